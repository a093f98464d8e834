"""Decides whether a worker can answer any requests while its look-ups fail.

It cannot if no look-up has worked for DOUBT_SECONDS, its near cache is empty, and for QUIET_SECONDS neither the shared
cache nor the previous release has answered. A balancer sends no requests to an instance that is not ready. So after the
first failure, the worker probes by itself, once a second: a random ZIP code of the release in the warehouse, and a few
others in the shared cache. One successful look-up ends this.
"""

import asyncio
import time
from collections.abc import Callable, Sequence

import msgspec

from service.cache.key import CacheKey
from service.cache.near import NearCache
from service.cache.read_through import Fill
from service.cache.shared import SharedCache
from warehouse.following import OpenRelease, ReleaseFollower
from warehouse.schema.errors import LookupBusy, LookupFailure

DOUBT_SECONDS = 3.0
QUIET_SECONDS = 10.0
_PROBE_SECONDS = 1.0
# Look-ups per probe. If the shared cache has a twentieth of all answers, one is found within QUIET_SECONDS.
_SAMPLES = 8


class SampleLookup(msgspec.Struct, frozen=True):
    """A query for probes: the cache key of its answer, and how to look it up."""

    key: CacheKey
    fill: Fill


TakeSamples = Callable[[OpenRelease, int], Sequence[SampleLookup]]


class LookupWatch:
    """Watches the look-ups of one worker, which owns it. `samples` returns some of a release. `fall_back`: the
    previous release answers if look-ups in the current one fail.
    """

    def __init__(
        self,
        follower: ReleaseFollower,
        near: NearCache,
        shared: SharedCache,
        samples: TakeSamples,
        *,
        fall_back: bool,
    ) -> None:
        self._follower = follower
        self._near = near
        self._shared = shared
        self._samples = samples
        self._fall_back = fall_back
        # in monotonic seconds
        self._failing_since: float | None = None
        self._answered_at = float("-inf")
        self._doubt = asyncio.Event()  # set while look-ups fail

    @property
    def can_answer(self) -> bool:
        now = time.monotonic()
        if self._failing_since is None or now - self._failing_since < DOUBT_SECONDS:
            return True
        return self._near.entries > 0 or now - self._answered_at < QUIET_SECONDS

    def worked(self) -> None:
        """Counts a look-up in the warehouse that worked."""
        self._failing_since = None
        self._doubt.clear()

    def failed(self, error: LookupFailure) -> None:
        """Counts a look-up in the warehouse that failed. One rejected because too many wait does not count."""
        if self._failing_since is None and not isinstance(error, LookupBusy):
            self._failing_since = time.monotonic()
            self._doubt.set()

    def answered(self) -> None:
        """Counts an answer from the shared cache or the previous release."""
        self._answered_at = time.monotonic()

    async def probe_in_doubt(self) -> float:
        """Waits until look-ups fail, then tries one: a step of a long-lived task. Returns the seconds to pause."""
        await self._doubt.wait()
        await self._probe()
        return _PROBE_SECONDS

    async def _probe(self) -> None:
        release, before = self._follower.current, self._follower.previous
        if release is None:
            return
        sample, *others = self._samples(release, _SAMPLES + 1)
        found = await asyncio.gather(*(self._shared.get(other.key) for other in others))
        if any(lookup.entry is not None for lookup in found):
            self.answered()
        if await self._works(sample):
            self.worked()
        elif self._fall_back and before is not None and await self._works(*self._samples(before.release, 1)):
            self.answered()

    async def _works(self, sample: SampleLookup) -> bool:
        try:
            await sample.fill()
        except LookupFailure:
            return False
        return True
