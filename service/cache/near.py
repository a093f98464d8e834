"""The near cache: answers in the worker's own memory (Decision 20).

Entries never become wrong (Decision 1), so a hit needs no check. They are evicted for lack of room, by a purge, when
their release is retired, and after a time to live. The TTL evicts idle entries, and makes hot ones touch the shared
cache so that it keeps them.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator

from service.cache.entry import CacheEntry, Found, PreparedHeads
from service.cache.key import CacheKey
from service.cache.sieve import Sieve

Prepare = Callable[[str, CacheEntry], PreparedHeads]

# Memory of an entry besides its content: node, two structs, digests, its place in the map. Measured: a process grew by
# 0.95 to 1.0 of this estimate, with 42,000 to 100,000 entries of 300 to 4,000 bytes.
ENTRY_OVERHEAD_BYTES = 450
# Overhead of the allocator and the object's header for each `bytes`.
_BYTES_OVERHEAD = 48
_TIDY_SECONDS = 1.0


class NearCache:
    """Answers of one worker, which owns it: at most `max_bytes` of memory (0: off), for `ttl` seconds each.

    Only entries of the current release are admitted, with the header lines that `prepare` makes from release and entry.
    `get(digest)` is the map's own (sieve.py): it counts hits, and the caller counts misses by `missed`.
    """

    def __init__(
        self,
        max_bytes: int,
        ttl: float,
        prepare: Prepare = lambda _release, _entry: (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sieve: Sieve[bytes, Found] = Sieve(max_bytes)
        self.get: Callable[[bytes], Found | None] = self._sieve.get
        self.generation = 0  # raised by a purge: results of earlier look-ups are not admitted
        self.misses = 0
        self._ttl = ttl
        self._prepare = prepare
        self._clock = clock
        self._release: str | None = None
        self._retired: set[str] = set()
        self._left: Counter[str] = Counter()

    @property
    def max_bytes(self) -> int:
        return self._sieve.max_cost

    @property
    def entries(self) -> int:
        return len(self._sieve)

    @property
    def used_bytes(self) -> int:
        return self._sieve.cost

    @property
    def hits(self) -> int:
        return self._sieve.hits

    @property
    def left(self) -> dict[str, int]:
        """Number of evicted entries by reason: lack of room, expired, retired, purged."""
        return {"size": self._sieve.evictions, **{why: self._left[why] for why in ("expired", "retired", "purged")}}

    def put(self, key: CacheKey, entry: CacheEntry, generation: int) -> None:
        """Keeps `entry`, unless its release is not current, its look-up began before a purge, or it is too large.

        `generation` is the one when the look-up in the next tier began.
        """
        if key.release != self._release or generation != self.generation or not self.max_bytes:
            return
        heads = self._prepare(key.release, entry)
        self._sieve.put(key.digest, Found(entry, "near", key.release, heads, self._clock()), cost_of(entry, heads))

    def missed(self) -> None:
        """Counts a miss: the next tier is read."""
        self.misses += 1

    def switch(self, release: str) -> None:
        """Admits only entries of `release` from now on. Those of other releases stay until they are retired."""
        self._release = release
        self._retired.discard(release)

    def retire(self, release: str) -> None:
        """Lets the next clean-up drop the entries of `release`, which no request uses any more.

        Ignores the current one.
        """
        if release != self._release:
            self._retired.add(release)

    def purge(self, condition: Callable[[Found], bool] = lambda _: True) -> Iterator[int]:
        """Drops the entries for which `condition` holds, a few per step. Yields how many were dropped."""
        self.generation += 1
        return self._counted("purged", self._sieve.discard_where(condition))

    def tidy(self) -> Iterator[int]:
        """Drops expired entries and those of retired releases, a few per step. Yields how many were dropped."""
        oldest = self._clock() - self._ttl
        yield from self._counted("expired", self._sieve.discard_oldest_where(lambda near: near.stored_at <= oldest))
        retired, self._retired = self._retired, set()
        if retired:
            yield from self._counted("retired", self._sieve.discard_where(lambda near: near.release in retired))

    async def tidy_in_steps(self) -> float:
        """Cleans up, with a turn for other tasks between the steps. Returns the seconds until the next time."""
        for _ in self.tidy():
            await asyncio.sleep(0)
        return _TIDY_SECONDS

    def _counted(self, why: str, steps: Iterator[int]) -> Iterator[int]:
        for gone in steps:
            self._left[why] += gone
            yield gone


def cost_of(entry: CacheEntry, heads: PreparedHeads = ()) -> int:
    """Returns the bytes of memory that an entry takes, including its bookkeeping."""
    parts = [part for part in (entry.body, entry.gzipped, *heads) if part]
    return ENTRY_OVERHEAD_BYTES + sum(len(part) for part in parts) + _BYTES_OVERHEAD * len(parts)
