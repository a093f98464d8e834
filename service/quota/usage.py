"""What partners asked for, counted in one worker until it is stored (flusher.py).

A count belongs to a key, an area, an outcome and the UTC day on which the request ended.
"""

import secrets
import time
from collections.abc import Callable
from typing import Literal

import msgspec

from service.quota.names import DAY_SECONDS
from service.terms import Positive

Outcome = Literal["answered", "answered_empty", "not_modified", "not_found", "rejected"]

# A 200 without figures is told apart, and billed as any 200 (CONTRACT.md 16).
BILLABLE: tuple[Outcome, ...] = ("answered", "answered_empty", "not_modified")
OUTCOMES: tuple[Outcome, ...] = (*BILLABLE, "not_found", "rejected")

Cell = tuple[int, str, Outcome]  # day, area, outcome


class Batch(msgspec.Struct, frozen=True, array_like=True):
    """What is stored at once for one key: days, areas, outcomes and how often.

    `number` rises from batch to batch of one worker, and never stands for other contents: the store applies it once.
    """

    number: int
    cells: tuple[tuple[int, str, Outcome, Positive], ...]

    def billable(self, first: int, end: int) -> int:
        """How much of it is billable, from the day `first` to before the day `end`."""
        return sum(n for day, _, outcome, n in self.cells if outcome in BILLABLE and first <= day < end)


# Numbers begin at 1: this one asks for totals and changes nothing.
NO_BATCH = Batch(0, ())


def outcome_of(status: int, outcome: str) -> Outcome | None:
    """What a request by a known key in a data area counts as, by its status and the reply's `outcome`.

    None is not counted: what failed on our side (5xx) is in the metrics and concerns no bill, and with a key that was
    not accepted (401) nobody asked. Every other 4xx but a 404 is `rejected`: 400 as well as 403, 405 and 429.
    """
    if status == 200:
        return "answered_empty" if outcome == "answered_empty" else "answered"
    if status == 304:
        return "not_modified"
    if status == 404:
        return "not_found"
    return "rejected" if 400 <= status < 500 and status != 401 else None


class UsageCounters:
    """Of one worker. Memory grows with keys, days, areas and outcomes, not with requests, however long a store is away.

    A key has at most one batch that was sent and not confirmed; what comes meanwhile waits for the next.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.worker_id = secrets.token_hex(8)
        self._clock = clock
        self._numbered = 0
        self._open: dict[str, dict[Cell, int]] = {}
        self._sent: dict[str, Batch] = {}

    def count(self, key_id: str, area: str, outcome: Outcome) -> None:
        """Call when the request has ended."""
        cells = self._open.get(key_id)
        if cells is None:
            cells = self._open[key_id] = {}
        cell = (int(self._clock() // DAY_SECONDS), area, outcome)
        cells[cell] = cells.get(cell, 0) + 1

    def to_send(self) -> list[tuple[str, Batch]]:
        """For every key with counts: the batch that is not confirmed yet, as it was, or else a new one."""
        for key_id in [key_id for key_id in self._open if key_id not in self._sent]:
            self._sent[key_id] = self._numbered_batch(self._open.pop(key_id))
        return list(self._sent.items())

    def confirm(self, key_id: str, number: int) -> None:
        """The batch is in the store."""
        sent = self._sent.get(key_id)
        if sent is not None and sent.number == number:
            del self._sent[key_id]

    def waiting(self) -> set[str]:
        """Keys with counts that are not known to be in the store."""
        return {*self._open, *self._sent}

    def billable(self, key_id: str, first: int, end: int) -> int:
        """Billable counts of those days that are not known to be in the store."""
        sent = self._sent.get(key_id)
        cells = self._open.get(key_id, {}).items()
        fresh = sum(n for (day, _, outcome), n in cells if outcome in BILLABLE and first <= day < end)
        return fresh + (sent.billable(first, end) if sent is not None else 0)

    def surrender(self) -> dict[str, tuple[Batch, ...]]:
        """Everything that is not known to be in the store, by key and in order; nothing is left here."""
        batches: dict[str, tuple[Batch, ...]] = {key_id: (batch,) for key_id, batch in self._sent.items()}
        for key_id, cells in self._open.items():
            batches[key_id] = (*batches.get(key_id, ()), self._numbered_batch(cells))
        self._open, self._sent = {}, {}
        return batches

    def _numbered_batch(self, cells: dict[Cell, int]) -> Batch:
        self._numbered += 1
        return Batch(self._numbered, tuple((*cell, n) for cell, n in cells.items()))
