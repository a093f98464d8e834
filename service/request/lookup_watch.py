"""Decides whether a worker can answer anybody while its look-ups fail.

It cannot if no look-up has worked for DOUBT_SECONDS, its near cache is empty, and for QUIET_SECONDS neither the shared
cache nor the previous release has answered. A balancer sends nothing to an instance that is not ready. So from the
first failure on, the worker asks by itself, once a second: for a random ZIP code of the release in the warehouse, and
for a few others in the shared cache. One look-up that works ends this.
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
# Per probe. Of a shared cache that has a twentieth of all answers, this finds one within QUIET_SECONDS.
_SAMPLES = 8


class SampleLookup(msgspec.Struct, frozen=True):
    """Something that a release can be asked for: where the answer would be cached, and how it is looked up."""

    key: CacheKey
    fill: Fill


TakeSamples = Callable[[OpenRelease, int], Sequence[SampleLookup]]


class LookupWatch:
    """Watches the look-ups of one worker, which owns it. `samples` takes some of a release. `fall_back`: the
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
        self._doubt = asyncio.Event()  # look-ups fail

    @property
    def can_answer(self) -> bool:
        now = time.monotonic()
        if self._failing_since is None or now - self._failing_since < DOUBT_SECONDS:
            return True
        return self._near.entries > 0 or now - self._answered_at < QUIET_SECONDS

    def worked(self) -> None:
        """A look-up in the warehouse worked."""
        self._failing_since = None
        self._doubt.clear()

    def failed(self, error: LookupFailure) -> None:
        """A look-up in the warehouse failed. One that was not made, because too many wait, says nothing."""
        if self._failing_since is None and not isinstance(error, LookupBusy):
            self._failing_since = time.monotonic()
            self._doubt.set()

    def answered(self) -> None:
        """The shared cache or the previous release has answered."""
        self._answered_at = time.monotonic()

    async def probe_in_doubt(self) -> float:
        """One step of a long-lived task: waits until look-ups fail, then tries. Returns the seconds to pause."""
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
