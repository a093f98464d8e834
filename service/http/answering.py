"""How every data area answers: from the current release through the cache; and, if so set, from the previous release
when look-ups in the current one fail."""

import logging
import time
from collections.abc import Callable
from typing import Any

import msgspec

from service.cache.key import cache_key
from service.cache.read_through import Fetched, Fill, ReadThrough
from service.http.caching import CachePolicy
from service.http.errors import ApiError
from service.http.head import head_of
from service.http.lookups import LookupWatch
from service.http.reply import Reply, Source
from warehouse.areas.paging import Cursors
from warehouse.following import OpenRelease, PreviousRelease, ReleaseFollower
from warehouse.schema.errors import LookupBusy, LookupFailure, LookupTimeout

log = logging.getLogger("forecast.http")

# How long a failure is shown. Only look-ups that no longer fail tell that a file is whole again.
_PROBLEM_SECONDS = 30.0
# Error codes of a release that does not have what was asked for.
_LACKING = ("no_matching_records", "not_found")
NOTHING_PUBLISHED = "No data has been published yet. Try again as Retry-After says."


class ResolvedRequest(msgspec.Struct, frozen=True):
    """What a request means in one release: its canonical query, how to answer it, and what that counts as."""

    query: str
    fill: Fill
    outcome: str = "answered"


Ask = Callable[[OpenRelease], ResolvedRequest]


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
        self._problem = ""
        self._problem_until = 0.0  # monotonic seconds

    @property
    def problem(self) -> str | None:
        """For operators: how look-ups in the current release have failed in the last half minute; None if none has."""
        return self._problem if time.monotonic() < self._problem_until else None

    async def answer(self, area: str, scope: Any, ask: Ask) -> Reply:
        """Answers what `ask` reads from the request, in one release.

        Raises:
            ApiError: whatever `ask` raises; 503 before the first release, and if the look-up fails.
        """
        release, stands_in_since = self._follower.current, self._follower.stands_in_since
        if release is None:
            raise ApiError("unavailable", NOTHING_PUBLISHED)
        if stands_in_since is not None:
            return await self._from_before(area, scope, ask, PreviousRelease(release, stands_in_since))
        asked = ask(release)
        key = cache_key(release.id, area, asked.query)
        try:
            fetched = await self._cache.get(key, asked.fill)
        except LookupFailure as error:
            self._lookups.failed(error)
            # a second look-up would keep a busy or slow engine even longer
            if isinstance(error, LookupBusy | LookupTimeout):
                raise ApiError("unavailable") from error
            self._fails(release, error)
            before = self._follower.previous
            if not self._fall_back or before is None:
                raise ApiError("unavailable") from error
            return await self._from_before(area, scope, ask, before)
        self._count(fetched)
        reply = self.policy.answer(head_of(scope), fetched, release.id, asked.outcome, key)
        return msgspec.structs.replace(reply, source=Source(fetched.tier, release.id, asked.query))

    def _fails(self, release: OpenRelease, error: LookupFailure) -> None:
        if release is not self._follower.current:
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

    async def _from_before(self, area: str, scope: Any, ask: Ask, before: PreviousRelease) -> Reply:
        try:
            asked = ask(before.release)
            fetched = await self._cache.get(cache_key(before.release.id, area, asked.query), asked.fill)
        except LookupFailure as error:
            self._lookups.failed(error)
            raise ApiError("unavailable") from error
        except ApiError as error:
            if error.code not in _LACKING:
                raise
            # the current release may have it: nobody is told that there is none
            raise ApiError("unavailable") from error
        self._lookups.answered()
        age = max(1, round(time.monotonic() - before.since))
        reply = self.policy.stale_answer(head_of(scope), fetched, before.release.id, asked.outcome, age)
        return msgspec.structs.replace(reply, source=Source("previous", before.release.id, asked.query))
