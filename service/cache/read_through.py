"""The read-through: on a miss in the near cache, reads the shared cache, then the warehouse, once for all waiting
requests. Fills both caches.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import cache, partial

from service.base.single_flight import SingleFlight
from service.base.telemetry import LOOKUP_SECONDS, LOOKUPS, Counter, Histogram, Telemetry
from service.base.tracing import STEP_OUTCOME, Attributes, step
from service.cache.entry import CacheEntry, Found
from service.cache.key import CacheKey
from service.cache.near import NearCache
from service.cache.shared import SharedCache, SharedLookup

Fill = Callable[[], Awaitable[bytes]]
Observe = Callable[[str, str, float], None]

# A look-up in the shared cache, where it is traced.
SHARED_STEP: Attributes = {"db.system.name": "redis", "db.operation.name": "GET"}

# Longer than a cache look-up may take, so that a request that missed just before the fill was stored still gets it.
_LINGER_SECONDS = 0.25


class ReadThrough:
    """The tiers of one worker, which owns it: `near`, `shared`, and the warehouse behind `fill`.

    `observe` is called with (tier, outcome, seconds) for every look-up. The near cache counts its own, because a call
    would take longer than the look-up.
    """

    def __init__(
        self,
        near: NearCache,
        shared: SharedCache,
        observe: Observe = lambda _tier, _outcome, _seconds: None,
    ) -> None:
        self.near = near
        self.shared = shared
        self._observe = observe
        self._flights: SingleFlight[CacheEntry] = SingleFlight(_LINGER_SECONDS)

    async def fetch(self, key: CacheKey, fill: Fill) -> Found:
        """Returns the entry of `key`, which is not near. If the shared cache lacks it, `fill` returns the encoded body.

        Raises the errors of `fill`.
        """
        generation = self.near.generation
        started = time.perf_counter()
        with step("shared", SHARED_STEP, remote=True) as asked:
            lookup = await self.shared.get(key)
            asked.set(STEP_OUTCOME, lookup.outcome)
        self._count_and_keep(key, lookup, generation, time.perf_counter() - started)
        if lookup.entry is not None:
            return Found(lookup.entry, "shared", key.release)
        bypassed = lookup.outcome == "unavailable"
        with step("single flight") as asked:
            observe = partial(asked.set, STEP_OUTCOME)
            entry = await self._flights.run(key.digest, lambda: self._fill(key, fill), observe)
        return Found(entry, "warehouse", key.release, bypassed=bypassed)

    def _count_and_keep(self, key: CacheKey, lookup: SharedLookup, generation: int, seconds: float) -> None:
        """Counts a look-up in the shared cache, which took `seconds`, and keeps a hit near. `generation` is the near
        cache's when the look-up began.
        """
        self.near.missed()
        self._observe("shared", lookup.outcome, seconds)
        if lookup.entry is not None:
            self.near.put(key, lookup.entry, generation)

    async def _fill(self, key: CacheKey, fill: Fill) -> CacheEntry:
        """Runs once for all requests that wait. The entry is stored once too, in the background."""
        generation = self.near.generation
        entry = await self._encoded(fill)
        self.near.put(key, entry, generation)
        self.shared.put(key, entry)
        return entry

    async def _encoded(self, fill: Fill) -> CacheEntry:
        started = time.perf_counter()
        outcome = "error"
        try:
            with step("warehouse"):
                body = await fill()
            outcome = "hit"
        finally:
            self._observe("warehouse", outcome, time.perf_counter() - started)
        # compressing the largest city takes some 10 ms, for which no other request should wait
        return await asyncio.to_thread(CacheEntry.of, body) if len(body) > 32_768 else CacheEntry.of(body)


def observed_in(telemetry: Telemetry) -> Observe:
    """Returns a function that counts look-ups in `telemetry`. It keeps counters and histograms: finding them takes
    longer than counting.
    """

    @cache
    def figures(tier: str, outcome: str) -> tuple[Counter, Histogram]:
        return telemetry.counter(LOOKUPS, tier, outcome), telemetry.histogram(LOOKUP_SECONDS, tier)

    def observe(tier: str, outcome: str, seconds: float) -> None:
        counter, histogram = figures(tier, outcome)
        counter.value += 1
        histogram.observe(seconds)

    figures("shared", "hit")  # shown from the start, as 0
    return observe
