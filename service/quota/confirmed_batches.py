"""Confirmed batches, kept for a while: a replica that becomes the primary may lack the newest."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from service.quota.batch import UsageBatch

# Lost batches are sent again if they were confirmed within this time.
KEPT_SECONDS = 60.0
# Some 200 bytes each. Above this number, keys in constant use keep less than KEPT_SECONDS.
MOST_KEPT = 100_000

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(UsageBatch)


class Lost(NamedTuple):
    """The batches of one key that the store lacks. `older`: it also lacks some that are no longer kept."""

    batches: list[UsageBatch]
    older: bool


class _Kept(NamedTuple):
    number: int
    before: int  # number of the batch before it, 0 if none was kept
    confirmed_at: float
    batch: bytes  # encoded: a tenth of the memory, and no objects for the garbage collector


class ConfirmedBatches:
    """The batches of one worker, kept until the store confirms that they survived KEPT_SECONDS: it does when it adds a
    later one, or when checked (`to_check`). `store` is the id of the store that has them; empty before its first reply.
    `clock`, in seconds, never goes back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.store = ""
        self._clock = clock
        self._of: dict[str, deque[_Kept]] = {}
        self._number = 0

    def note_store(self, store: str) -> None:
        """Notes which store has replied. An emptied one is a new one: no batch is resent to it, because an import may
        restore the counts.
        """
        if store != self.store:
            self.store, self._number = store, 0
            self._of.clear()

    def newest(self, key_id: str) -> int:
        """Returns the number of the key's newest batch; 0 if none is kept."""
        kept = self._of.get(key_id)
        return kept[-1].number if kept else 0

    def add(self, key_id: str, batch: UsageBatch) -> None:
        """Keeps a batch that the store confirmed; that confirms those before, too."""
        kept = self._of.setdefault(key_id, deque())
        if kept and self._number >= MOST_KEPT:
            self._drop(kept)
        kept.append(_Kept(batch.number, kept[-1].number if kept else 0, self._clock(), _ENCODER.encode(batch)))
        self._number += 1
        self.proven(key_id)

    def proven(self, key_id: str) -> None:
        """Drops batches older than KEPT_SECONDS: the store has all batches of the key now."""
        kept = self._of.get(key_id)
        oldest = self._clock() - KEPT_SECONDS
        while kept and kept[0].confirmed_at <= oldest:
            self._drop(kept)
        if not kept:
            self._of.pop(key_id, None)

    def lost(self, key_id: str, last: int) -> Lost:
        """Takes out the batches that a store lacks whose last one is `last`, in order."""
        kept = self._of.get(key_id, deque())
        first, batches = 0, []
        while kept and kept[-1].number > last:
            entry = kept.pop()
            first = entry.before
            batches.append(_DECODER.decode(entry.batch))
        self._number -= len(batches)
        if not kept:
            self._of.pop(key_id, None)
        return Lost(batches[::-1], older=first > last)

    def to_check(self) -> list[str]:
        """Returns the keys to check in the store, since none of their batches was stored for KEPT_SECONDS."""
        oldest = self._clock() - KEPT_SECONDS
        return [key_id for key_id, kept in self._of.items() if kept[-1].confirmed_at <= oldest]

    def held(self) -> list[str]:
        """Returns the keys with kept batches."""
        return list(self._of)

    def all(self) -> Iterator[tuple[str, list[UsageBatch]]]:
        """Yields batches by key and in order."""
        for key_id, kept in self._of.items():
            yield key_id, [_DECODER.decode(entry.batch) for entry in kept]

    def _drop(self, kept: deque[_Kept]) -> None:
        kept.popleft()
        self._number -= 1
