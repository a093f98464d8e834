"""How every data area answers: what is asked of a release, through the cache; and, where that is set, from the release
before when the current one fails."""

import time
from collections.abc import Callable
from typing import Any

import msgspec

from service.cache.key import cache_key
from service.cache.read_through import Fill, ReadThrough
from service.http.caching import CachePolicy
from service.http.errors import ApiError
from service.http.head import head_of
from service.http.reply import Reply
from warehouse.errors import LookupBusy, LookupFailure, LookupTimeout
from warehouse.follow import OpenRelease, ReleaseFollower

NOTHING_PUBLISHED = "No data has been published yet. Try again as Retry-After says."


class Asked(msgspec.Struct, frozen=True):
    """What a request means in one release: its canonical query, how to answer it, and what that counts as."""

    query: str
    fill: Fill
    outcome: str = "answered"


Ask = Callable[[OpenRelease], Asked]


class Answers:
    """`fall_back`: a look-up that fails is answered from the release before, if this worker served one."""

    def __init__(
        self, follower: ReleaseFollower, cache: ReadThrough, policy: CachePolicy, *, fall_back: bool = False
    ) -> None:
        self.policy = policy
        self._follower = follower
        self._cache = cache
        self._fall_back = fall_back

    async def answer(self, area: str, scope: Any, ask: Ask) -> Reply:
        """The answer to what `ask` makes of the request; it may raise ApiError.

        Raises:
            ApiError: 503 before the first release, and if the look-up fails.
        """
        release = self._follower.current
        if release is None:
            raise ApiError("unavailable", NOTHING_PUBLISHED)
        asked = ask(release)
        key = cache_key(release.id, area, asked.query)
        try:
            fetched = await self._cache.get(key, asked.fill)
        except LookupFailure as error:
            # one that is busy or slow would be so all the more
            if not self._fall_back or isinstance(error, LookupBusy | LookupTimeout):
                raise ApiError("unavailable") from error
            return await self._from_before(area, scope, ask, error)
        return self.policy.answer(head_of(scope), fetched, release.id, asked.outcome, key)

    async def _from_before(self, area: str, scope: Any, ask: Ask, cause: LookupFailure) -> Reply:
        before = self._follower.previous
        if before is None:
            raise ApiError("unavailable") from cause
        try:
            asked = ask(before.release)
            fetched = await self._cache.get(cache_key(before.release.id, area, asked.query), asked.fill)
        except (ApiError, LookupFailure):  # it lacks what the current one has: nobody is told that there is none
            raise ApiError("unavailable") from cause
        age = max(1, round(time.monotonic() - before.since))
        return self.policy.stale_answer(head_of(scope), fetched, before.release.id, asked.outcome, age)
