"""Looks up the entry of a resolved request: in the near cache, the shared cache, the warehouse. If configured, the
previous release answers when look-ups in the current one fail.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from msgspec import structs

from service.cache.entry import Found
from service.cache.key import CacheKey, cache_key
from service.cache.read_through import Fill, ReadThrough
from service.request.errors import ApiError
from service.request.lookup_watch import LookupWatch
from service.request.request import Request
from service.request.resolve import LACKING, Resolver, no_release
from service.request.targets import Resolution, ResolvedQuery
from warehouse.following import OpenRelease, PreviousRelease, ReleaseFollower
from warehouse.schema.errors import LookupBusy, LookupFailure, LookupTimeout

log = logging.getLogger("forecast.request")

# How long a failure is shown. Only a successful look-up proves that a file is intact again.
_PROBLEM_SECONDS = 30.0
# Batches of a worker that look up at once, and how long others wait for their turn: each may need a hundred look-ups,
# and the warehouse's queue must have room for single requests.
_BATCHES_AT_ONCE, _TURN_SECONDS = 2, 1.0

T = TypeVar("T")


class LookUps:
    """Looks up for one worker, which owns it.

    `fall_back`: if a look-up fails, the previous release answers, if there is one. Such an answer is marked as stale,
    and so is one of a release that stands in for one that cannot be opened.
    """

    def __init__(
        self,
        follower: ReleaseFollower,
        resolver: Resolver,
        cache: ReadThrough,
        watch: LookupWatch,
        *,
        fall_back: bool = False,
    ) -> None:
        self._follower = follower
        self._resolver = resolver
        self._cache = cache
        self._near = cache.near.get
        self._watch = watch
        self._fall_back = fall_back
        self._turns = asyncio.Semaphore(_BATCHES_AT_ONCE)
        self._problem = ""
        self._problem_until = 0.0  # monotonic seconds

    @property
    def problem(self) -> str | None:
        """For operators: how look-ups in the current release failed in the last half minute; None if none did."""
        return self._problem if time.monotonic() < self._problem_until else None

    def look_up(self, request: Request) -> Coroutine[Any, Any, None] | None:
        """Sets the request's result. Raises ApiError (503) if the look-up fails."""
        target = request.target
        found = self._near(target.digest) if target is not None else None
        if found is None:
            return self._fetch(request)
        request.found = found
        return None

    async def _fetch(self, request: Request) -> None:
        def resolution(release: OpenRelease) -> Resolution:
            known = request.resolution
            if known is None or known.release is not release:
                known = self._resolver.in_release(request, release)
            return known

        async def fetch(release: OpenRelease) -> Found:
            target = request.target
            if target is not None and target.release == release.id and target.digest:
                key = target.key  # which is not near; the line is resolved only on a miss
            else:  # the previous release, or one that stands in
                key = resolution(release).key
                near = self._near(key.digest)
                if near is not None:
                    return near
            return await self._cache.fetch(key, lambda: self._fill(release, resolution(release).query.fill))

        found, _, stale_for = await self.in_one_release(fetch)
        if found.tier == "shared":
            self._watch.answered()
        if stale_for is not None:
            found = structs.replace(found, tier="previous", heads=(), stale_for=stale_for)
        request.found = found

    async def in_one_release(self, make: Callable[[OpenRelease], Awaitable[T]]) -> tuple[T, OpenRelease, int | None]:
        """Returns the result of `make` for the current release, or for the previous one if that fails and may be
        replaced. Returns also the release, and the seconds since a previous one stopped being current.

        Raises:
            ApiError: those of `make`; 503 before the first release, and if `make` raises LookupFailure.
        """
        release, stands_in_since = self._follower.current, self._follower.stands_in_since
        if release is None:
            raise no_release(self._follower)
        if stands_in_since is not None:
            return await self._from_previous(make, PreviousRelease(release, stands_in_since))
        try:
            return await make(release), release, None
        except LookupFailure as error:
            previous = self._follower.previous
            # a second look-up would keep a busy or slow engine even longer
            if not self._fall_back or previous is None or isinstance(error, LookupBusy | LookupTimeout):
                raise ApiError("unavailable") from error
        return await self._from_previous(make, previous)

    async def fetch_all(
        self, release: OpenRelease, area: str, queries: Sequence[ResolvedQuery]
    ) -> dict[str, Found | LookupFailure]:
        """Returns the entries of several queries, by canonical form: those that are not near are looked up at once, so
        that they share commands and statements. A failed one does not affect the others.

        Raises:
            LookupFailure: if all failed.
        """
        fills = {one.query: (cache_key(release.id, area, one.query), one.fill) for one in queries}
        found: dict[str, Found | LookupFailure] = {}
        for query, (key, _) in fills.items():
            near = self._near(key.digest)
            if near is not None:
                found[query] = near
        missing = [query for query in fills if query not in found]
        if missing:
            found |= await self._fetch_missing(release, {query: fills[query] for query in missing})
        failures = [one for one in found.values() if isinstance(one, LookupFailure)]
        if failures and len(failures) == len(found):
            raise failures[0]
        return found

    async def _fetch_missing(
        self, release: OpenRelease, fills: Mapping[str, tuple[CacheKey, Fill]]
    ) -> dict[str, Found | LookupFailure]:
        try:
            async with asyncio.timeout(_TURN_SECONDS):
                await self._turns.acquire()
        except TimeoutError:
            return dict.fromkeys(fills, LookupBusy("other batches look up"))
        try:
            results = await asyncio.gather(
                *(self._cache.fetch(key, partial(self._fill, release, fill)) for key, fill in fills.values()),
                return_exceptions=True,
            )
        finally:
            self._turns.release()
        found: dict[str, Found | LookupFailure] = {}
        for query, result in zip(fills, results, strict=True):
            if isinstance(result, BaseException) and not isinstance(result, LookupFailure):
                raise result
            if isinstance(result, Found) and result.tier == "shared":
                self._watch.answered()
            found[query] = result
        return found

    async def _fill(self, release: OpenRelease, fill: Fill) -> bytes:
        """Looks up in the warehouse, once for all waiting requests. Raises LookupFailure."""
        try:
            body = await fill()
        except LookupFailure as error:
            self._failed(release, error)
            raise
        if release is self._follower.current and self._follower.stands_in_since is None:
            self._watch.worked()
        return body

    def _failed(self, release: OpenRelease, error: LookupFailure) -> None:
        self._watch.failed(error)
        if isinstance(error, LookupBusy | LookupTimeout) or release is not self._follower.current:
            return
        problem = f"look-ups in release {release.id} fail: {error}"
        if self.problem is None:
            log.error("%s", problem)
        self._problem, self._problem_until = problem, time.monotonic() + _PROBLEM_SECONDS

    async def _from_previous(
        self, make: Callable[[OpenRelease], Awaitable[T]], previous: PreviousRelease
    ) -> tuple[T, OpenRelease, int]:
        try:
            made = await make(previous.release)
        except LookupFailure as error:
            raise ApiError("unavailable") from error
        except ApiError as error:
            if error.code not in LACKING:
                raise
            # the current release may have it, so this is not a 404
            raise ApiError("unavailable") from error
        self._watch.answered()
        return made, previous.release, max(1, round(time.monotonic() - previous.since))
