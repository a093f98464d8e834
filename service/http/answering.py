"""How every data area answers: from the current release through the cache; and, if so set, from the previous release
when look-ups in the current one fail."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from service.cache.key import CacheKey, cache_key
from service.cache.read_through import Fetched, Fill, ReadThrough
from service.http.caching import CachePolicy
from service.http.errors import ApiError
from service.http.head import RequestHead
from service.http.lookups import LookupWatch
from service.http.reading import ReadError, Reading, ResolvedRequest
from service.http.reply import Later, Reply, Source
from warehouse.areas.paging import Cursors
from warehouse.following import OpenRelease, PreviousRelease, ReleaseFollower
from warehouse.schema.errors import LookupBusy, LookupFailure, LookupTimeout

log = logging.getLogger("forecast.http")

# How long a failure is shown. Only look-ups that no longer fail tell that a file is whole again.
_PROBLEM_SECONDS = 30.0
# Batches of a worker that look up at once, and how long others wait for their turn: each may bring a hundred look-ups,
# and the warehouse's queue is to have room for requests of one.
_BATCHES_AT_ONCE, _TURN_SECONDS = 2, 1.0
# Error codes of a release that does not have what was asked for.
_LACKING = ("no_matching_records", "not_found")
_NOTHING_PUBLISHED = "No data has been published yet. Try again as Retry-After says."
_NO_RELEASE = "The data is unavailable at the moment. Try again as Retry-After says."


Ask = Callable[[OpenRelease], ResolvedRequest]
T = TypeVar("T")


class Answers:
    """Answers requests in all data areas. One per worker, which owns it.

    `fall_back`: if a look-up fails, the previous release answers, if there is one. Such an answer says that it is
    stale, and so does one of a release that stands in for a release that cannot be opened.
    """

    def __init__(
        self,
        follower: ReleaseFollower,
        cache: ReadThrough,
        policy: CachePolicy,
        cursors: Cursors,
        lookups: LookupWatch,
        *,
        fall_back: bool = False,
    ) -> None:
        self.cursors = cursors
        self.policy = policy
        self._follower = follower
        self._cache = cache
        self._lookups = lookups
        self._fall_back = fall_back
        self._turns = asyncio.Semaphore(_BATCHES_AT_ONCE)
        self._problem = ""
        self._problem_until = 0.0  # monotonic seconds

    @property
    def problem(self) -> str | None:
        """For operators: how look-ups in the current release have failed in the last half minute; None if none has."""
        return self._problem if time.monotonic() < self._problem_until else None

    async def answer(self, area: str, head: RequestHead, ask: Ask) -> Reply:
        """Answers what `ask` reads from the request, in one release. `head` says what was found out already.

        Raises:
            ApiError: whatever `ask` raises; 503 before the first release, and if the look-up fails.
        """

        async def fetch(release: OpenRelease) -> tuple[Reading, Fetched]:
            read = self._meant(area, head, ask, release)
            if head.failed is not None:
                (error, traceback), head.failed = head.failed, None
                try:
                    raise error.with_traceback(traceback)
                finally:
                    # they refer to this frame: a cycle, which only the garbage collector would free
                    del error, traceback
            return read, await self._cache.get(read.key, read.asked.fill)

        (read, fetched), release, age = await self.in_one_release(fetch)
        if age is None:
            self._count(fetched)
            return self._reply(head, read, fetched)
        reply = self.policy.stale_answer(head, fetched, release.id, read.asked.outcome, age)
        return _with_source(reply, read.asked, Source("previous", release.id, read.asked.query))

    def answer_now(self, area: str, head: RequestHead, ask: Ask) -> Reply | Later:
        """The same answer, if the near cache has its entry, or what goes on from there. Raises ApiError too."""
        release = self._follower.current
        if release is None or self._follower.stands_in_since is not None:
            return partial(self.answer, area, head, ask)
        read = self._meant(area, head, ask, release)
        near = self._cache.near.get(read.key.digest)
        if near is None:
            return partial(self.answer, area, head, ask)
        return self._reply(head, read, Fetched(near.entry, "near", bypassed=False))

    def read(self, area: str, ask: Ask) -> Reading | ReadError | None:
        """What `ask` reads from a request, in the current release. None if there is none, if another release stands in,
        or for a defect, which whoever reads again tells of."""
        release = self._follower.current
        if release is None or self._follower.stands_in_since is not None:
            return None
        try:
            return self._read(area, ask, release)
        except Exception:
            return None

    async def look_up(self, read: Reading) -> bytes:
        """The body of what was read, from the warehouse. A failure is told to operators here, because nobody may wait
        for it any more. Raises LookupFailure."""
        try:
            body = await read.asked.fill()
        except LookupFailure as error:
            self._failed(read.release, error)
            raise
        self._lookups.worked()
        return body

    def _reply(self, head: RequestHead, read: Reading, fetched: Fetched) -> Reply:
        asked, key = read.asked, read.key
        reply = self.policy.answer(head, fetched, key.release, asked.outcome, key)
        return _with_source(reply, asked, Source(fetched.tier, key.release, asked.query))

    def _meant(self, area: str, head: RequestHead, ask: Ask, release: OpenRelease) -> Reading:
        """What the request means, unless `head` says so for this release. Raises ApiError."""
        read = head.read
        if read is None or read.release is not release or read.area != area:
            head.failed = None  # in another release, if at all
            head.read = read = self._read(area, ask, release)
        if isinstance(read, Reading):
            return read
        error, head.read = read.error, None
        del read
        try:
            raise error
        finally:
            del error  # as above

    def _read(self, area: str, ask: Ask, release: OpenRelease) -> Reading | ReadError:
        try:
            asked = ask(release)
        except ApiError as error:
            if release is self._follower.current and self._follower.stands_in_since is None:
                error.release = release.id
            return ReadError(release, area, error)
        return Reading(release, area, asked, cache_key(release.id, area, asked.query))

    async def in_one_release(self, make: Callable[[OpenRelease], Awaitable[T]]) -> tuple[T, OpenRelease, int | None]:
        """What `make` makes of the current release; or, where that fails and another may answer, of the previous one.
        With the release, and the seconds since a previous one stopped being current.

        Raises:
            ApiError: whatever `make` raises; 503 before the first release, and if it raises LookupFailure.
        """
        release, stands_in_since = self._follower.current, self._follower.stands_in_since
        if release is None:
            raise no_release(self._follower)
        if stands_in_since is not None:
            return await self._from_before(make, PreviousRelease(release, stands_in_since))
        try:
            return await make(release), release, None
        except LookupFailure as error:
            self._failed(release, error)
            before = self._follower.previous
            # a second look-up would keep a busy or slow engine even longer
            if not self._fall_back or before is None or isinstance(error, LookupBusy | LookupTimeout):
                raise ApiError("unavailable") from error
        return await self._from_before(make, before)

    async def fetch_all(
        self, release: OpenRelease, area: str, asked: Sequence[ResolvedRequest]
    ) -> dict[str, Fetched | LookupFailure]:
        """The entries of several requests, by canonical query: what is not near is asked for at once, so that look-ups
        share commands and statements. One that fails spoils no other.

        Raises:
            LookupFailure: if all failed.
        """
        fills = {one.query: (cache_key(release.id, area, one.query), one.fill) for one in asked}
        found: dict[str, Fetched | LookupFailure] = {}
        for query, (key, _) in fills.items():
            near = self._cache.near.get(key.digest)
            if near is not None:
                found[query] = Fetched(near.entry, "near", bypassed=False)
        missing = [query for query in fills if query not in found]
        if missing:
            found |= await self._look_up(release, {query: fills[query] for query in missing})
        failures = [one for one in found.values() if isinstance(one, LookupFailure)]
        if failures and len(failures) == len(found):
            raise failures[0]
        return found

    async def _look_up(
        self, release: OpenRelease, fills: Mapping[str, tuple[CacheKey, Fill]]
    ) -> dict[str, Fetched | LookupFailure]:
        try:
            async with asyncio.timeout(_TURN_SECONDS):
                await self._turns.acquire()
        except TimeoutError:
            return dict.fromkeys(fills, LookupBusy("other batches look up"))
        try:
            results = await asyncio.gather(*(self._cache.get(*fill) for fill in fills.values()), return_exceptions=True)
        finally:
            self._turns.release()
        found: dict[str, Fetched | LookupFailure] = {}
        for query, result in zip(fills, results, strict=True):
            if isinstance(result, LookupFailure):
                self._failed(release, result)
            elif isinstance(result, BaseException):
                raise result
            elif release is self._follower.current and self._follower.stands_in_since is None:
                self._count(result)
            found[query] = result
        return found

    def _failed(self, release: OpenRelease, error: LookupFailure) -> None:
        self._lookups.failed(error)
        if isinstance(error, LookupBusy | LookupTimeout) or release is not self._follower.current:
            return
        problem = f"look-ups in release {release.id} fail: {error}"
        if self.problem is None:
            log.error("%s", problem)
        self._problem, self._problem_until = problem, time.monotonic() + _PROBLEM_SECONDS

    def _count(self, fetched: Fetched) -> None:
        if fetched.tier == "warehouse":
            self._lookups.worked()
        elif fetched.tier == "shared":
            self._lookups.answered()

    async def _from_before(
        self, make: Callable[[OpenRelease], Awaitable[T]], before: PreviousRelease
    ) -> tuple[T, OpenRelease, int]:
        try:
            made = await make(before.release)
        except LookupFailure as error:
            self._lookups.failed(error)
            raise ApiError("unavailable") from error
        except ApiError as error:
            if error.code not in _LACKING:
                raise
            # the current release may have it: nobody is told that there is none
            raise ApiError("unavailable") from error
        self._lookups.answered()
        return made, before.release, max(1, round(time.monotonic() - before.since))


def no_release(follower: ReleaseFollower) -> ApiError:
    """The error while no release is open."""
    return ApiError("unavailable", _NOTHING_PUBLISHED if follower.unpublished else _NO_RELEASE)


def _with_source(reply: Reply, asked: ResolvedRequest, source: Source) -> Reply:
    if asked.headers:
        return msgspec.structs.replace(reply, headers=(*reply.headers, *asked.headers), kept=None, source=source)
    return msgspec.structs.replace(reply, source=source)
