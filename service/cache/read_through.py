"""The read-through: near cache, shared cache, then one fill for all who wait, then store in both."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

from service.cache.entry import CacheEntry
from service.cache.key import CacheKey
from service.cache.near import NearCache
from service.cache.shared import SharedCache
from service.cache.single_flight import SingleFlight

Tier = Literal["near", "shared", "warehouse"]
Fill = Callable[[], Awaitable[bytes]]
Observe = Callable[[str, str, float], None]

# Longer than a cache look-up may take: whoever missed before the fill was stored has asked again by then.
_LINGER_SECONDS = 0.25


class Fetched(msgspec.Struct, frozen=True):
    """`bypassed`: the shared cache could not be asked."""

    entry: CacheEntry
    tier: Tier
    bypassed: bool


class ReadThrough:
    """`observe` is told (tier, outcome, seconds) of every look-up but those in the near cache, which counts its own:
    telling would take longer than finding."""

    def __init__(
        self,
        near: NearCache,
        shared: SharedCache,
        observe: Observe = lambda _tier, _outcome, _seconds: None,
    ) -> None:
        self._near = near
        self._shared = shared
        self._observe = observe
        self._flights: SingleFlight[CacheEntry] = SingleFlight(_LINGER_SECONDS)

    async def get(self, key: CacheKey, fill: Fill) -> Fetched:
        """The entry of `key`, from the first tier that has it. `fill` gives the encoded body on a miss.

        Raises whatever `fill` raises.
        """
        near = self._near.get(key.digest)
        if near is not None:
            return Fetched(near.entry, "near", bypassed=False)
        self._near.misses += 1
        generation = self._near.generation
        started = time.perf_counter()
        found = await self._shared.get(key)
        self._observe("shared", found.outcome, time.perf_counter() - started)
        if found.entry is not None:
            self._near.put(key, found.entry, generation)
            return Fetched(found.entry, "shared", bypassed=False)
        bypassed = found.outcome == "unavailable"
        entry = await self._flights.run(key.name, lambda: self._fill(key, fill))
        return Fetched(entry, "warehouse", bypassed)

    async def _fill(self, key: CacheKey, fill: Fill) -> CacheEntry:
        """Once for all who wait, and so is the entry stored, which nobody waits for."""
        generation = self._near.generation
        entry = await self._made(fill)
        self._near.put(key, entry, generation)
        self._shared.put(key, entry)
        return entry

    async def _made(self, fill: Fill) -> CacheEntry:
        started = time.perf_counter()
        outcome = "error"
        try:
            body = await fill()
            outcome = "hit"
        finally:
            self._observe("warehouse", outcome, time.perf_counter() - started)
        # compressing the largest city takes some 10 ms, which nobody else should wait for
        return await asyncio.to_thread(CacheEntry.of, body) if len(body) > 32_768 else CacheEntry.of(body)
