"""Counts partners' requests in one worker, until the counts are stored (flusher.py).

A count belongs to a key, an area, an outcome and the UTC hour in which the request ended.
"""

import secrets
import time
from collections import deque
from collections.abc import Callable, Collection
from itertools import chain

from service.quota.batch import BILLABLE, NO_BATCH, Cell, Counts, UsageBatch, UsageOutcome
from service.quota.confirmed_batches import ConfirmedBatches
from service.quota.names import HOUR_SECONDS, HOURS_IN_A_DAY


class Tally:
    """The count of one cell of one key. UsageCounters creates it, and closes it to store the count. Until then its
    holders may add to it, within its hour.
    """

    __slots__ = ("closed", "n")

    def __init__(self) -> None:
        self.n = 0
        self.closed = False


class UsageCounters:
    """The counts of one worker, for as long as it lives.

    Memory grows with keys, hours, areas and outcomes, not with requests, however long the store is unreachable. A key
    has at most one batch that was sent and not confirmed, and after it one that was spooled and not sent; later counts
    wait for the next. Batches that the store confirmed and lost come before these, and are sent again in their order.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.worker_id = secrets.token_hex(8)
        self.kept = ConfirmedBatches()
        self._clock = clock
        self._numbered = 0
        self._open: dict[str, dict[Cell, Tally]] = {}
        self._spooled: dict[str, UsageBatch] = {}
        self._sent: dict[str, deque[UsageBatch]] = {}  # the first one of each key is sent until it is confirmed
        self._spooling = False
        self._last_spooled = 0
        # billable counts that were spooled or sent, by key and day, because every request checks its quota
        self._billable: dict[str, dict[int, int]] = {}

    @property
    def waits(self) -> int:
        """Number of counted requests that the store has not confirmed."""
        batches = chain(self._spooled.values(), *self._sent.values())
        numbered = sum(n for batch in batches for *_, n in batch.cells)
        return numbered + sum(tally.n for cells in self._open.values() for tally in cells.values())

    def count(self, key_id: str, area: str, outcome: UsageOutcome, number: int = 1) -> Tally:
        """Counts a request that has ended and counts as `number`. The tally counts further ones of its kind."""
        cells = self._open.get(key_id)
        if cells is None:
            cells = self._open[key_id] = {}
        hour = int(self._clock() // HOUR_SECONDS)
        tally = cells.get((hour, area, outcome))
        if tally is None:
            tally = cells[hour, area, outcome] = Tally()
        tally.n += number
        return tally

    def to_send(self) -> list[tuple[str, UsageBatch]]:
        """Returns for every key with counts its unconfirmed batch, unchanged, or else the next one."""
        for key_id in [*self._spooled, *self._open]:
            self.to_send_of(key_id)
        return [(key_id, batches[0]) for key_id, batches in self._sent.items()]

    def to_send_of(self, key_id: str) -> UsageBatch:
        """Returns the same for one key; NO_BATCH if nothing may be sent now."""
        if key_id in self._sent:
            return self._sent[key_id][0]
        if key_id in self._spooled:
            if self._spooling:
                return NO_BATCH
            batch = self._spooled.pop(key_id)
        elif key_id in self._open:
            batch = self._numbered_batch(self._close(key_id))
        else:
            return NO_BATCH
        self._sent[key_id] = deque([batch])
        return batch

    def was_sent(self, key_id: str) -> bool:
        """Returns whether a batch of the key was sent before, and waits for its confirmation."""
        return key_id in self._sent

    def confirm(self, key_id: str, number: int) -> bool:
        """Notes that the batch is in the store; returns whether it was unconfirmed."""
        batches = self._sent.get(key_id)
        if batches is None or batches[0].number != number:
            return False
        confirmed = batches.popleft()
        if not batches:
            del self._sent[key_id]
        self.kept.add(key_id, confirmed)
        self._note_billable(key_id, confirmed, -1)
        return True

    def take_back(self, key_id: str, last: int) -> bool | None:
        """Notes that the store lost the confirmed batches after the one numbered `last`: they wait again.

        Returns whether older ones are lost for good; None if no batch waits again.
        """
        lost = self.kept.lost(key_id, last)
        if not lost.batches:
            return None
        for batch in lost.batches:
            self._note_billable(key_id, batch, 1)
        self._sent.setdefault(key_id, deque()).extendleft(reversed(lost.batches))
        return lost.older

    def waiting(self) -> set[str]:
        """Returns the keys with unconfirmed counts."""
        return {*self._open, *self._spooled, *self._sent}

    def is_waiting(self, key_id: str) -> bool:
        return key_id in self._open or key_id in self._spooled or key_id in self._sent

    def billable(self, key_id: str, first: int, end: int) -> int:
        """Returns the unconfirmed billable counts, from the day `first` to before the day `end`."""
        total = 0
        for day, n in self._billable.get(key_id, {}).items():
            if first <= day < end:
                total += n
        for (hour, _, outcome), tally in self._open.get(key_id, {}).items():
            if first <= hour // HOURS_IN_A_DAY < end and outcome in BILLABLE:
                total += tally.n
        return total

    def to_spool(self, only: Collection[str] | None = None) -> dict[str, tuple[UsageBatch, ...]]:
        """Returns unconfirmed batches, by key and in order; of counts never sent, only those of the keys `only`.

        Call `spool_written` afterwards. Until then, only batches sent before are sent again: under each number, the
        store must get the same contents as the file. Only the newest file counts, because no other worker reads the
        file of a live one (spool.py).
        """
        for key_id in [key_id for key_id in self._open if only is None or key_id in only]:
            cells = self._close(key_id)
            before = self._spooled.get(key_id)
            for hour, area, outcome, n in before.hours if before else ():
                cells[hour, area, outcome] = cells.get((hour, area, outcome), 0) + n
            self._spooled[key_id] = self._numbered_batch(cells)
        self._spooling = True
        self._last_spooled = self._numbered
        return {
            key_id: (*self._sent.get(key_id, ()), *([self._spooled[key_id]] if key_id in self._spooled else ()))
            for key_id in {**self._sent, **self._spooled}
        }

    def spool_written(self) -> None:
        """Notes that the result of `to_spool` is on disk, or cannot be written."""
        self._spooling = False

    def has_spooled(self) -> bool:
        """Returns whether anything spooled is unconfirmed."""
        return bool(self._spooled) or any(some[0].number <= self._last_spooled for some in self._sent.values())

    def surrender(self, *, kept: bool = False) -> dict[str, tuple[UsageBatch, ...]]:
        """Removes and returns all unconfirmed batches, by key and in order.

        With `kept`, also recently confirmed ones, which the store may have lost.
        """
        batches = self.to_spool()
        self.spool_written()
        self._spooled, self._sent, self._billable = {}, {}, {}
        for key_id, confirmed in self.kept.all() if kept else ():
            batches[key_id] = (*confirmed, *batches.get(key_id, ()))
        return batches

    def _note_billable(self, key_id: str, batch: UsageBatch, sign: int) -> None:
        days = self._billable.setdefault(key_id, {})
        for day, _, outcome, n in batch.cells:
            if outcome in BILLABLE:
                days[day] = days.get(day, 0) + sign * n
                if not days[day]:
                    del days[day]
        if not days:
            del self._billable[key_id]

    def _close(self, key_id: str) -> dict[Cell, int]:
        """Closes the tallies of the key; returns what they counted."""
        cells = {}
        days = self._billable.setdefault(key_id, {})
        for cell, tally in self._open.pop(key_id).items():
            tally.closed = True
            cells[cell] = n = tally.n
            hour, _, outcome = cell
            if outcome in BILLABLE:
                day = hour // HOURS_IN_A_DAY
                days[day] = days.get(day, 0) + n
        return cells

    def _numbered_batch(self, cells: dict[Cell, int]) -> UsageBatch:
        self._numbered += 1
        days: dict[Cell, int] = {}
        for (hour, area, outcome), n in cells.items():
            day = (hour // HOURS_IN_A_DAY, area, outcome)
            days[day] = days.get(day, 0) + n
        return UsageBatch(self._numbered, _counts(days), _counts(cells))


def _counts(cells: dict[Cell, int]) -> Counts:
    return tuple((*cell, n) for cell, n in cells.items())
