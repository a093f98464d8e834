"""Batches: usage of one key that is stored at once."""

from typing import Literal

import msgspec

from service.base.terms import Positive

UsageOutcome = Literal["answered", "answered_empty", "not_modified", "not_found", "rejected", "limited"]

# A 200 without figures has an outcome of its own, and is billed like any 200 (contract 16).
BILLABLE: tuple[UsageOutcome, ...] = ("answered", "answered_empty", "not_modified")
OUTCOMES: tuple[UsageOutcome, ...] = (*BILLABLE, "not_found", "rejected", "limited")

Cell = tuple[int, str, UsageOutcome]  # hour, area, outcome
# day or hour, area, outcome, how often
Counts = tuple[tuple[int, str, UsageOutcome, Positive], ...]


class UsageBatch(msgspec.Struct, frozen=True, array_like=True):
    """The counts of one key that are stored at once. `cells` are by day, `hours` the same counts by hour.

    `number` rises from batch to batch of one worker, and always means the same contents: the store applies it once.
    Batches spooled by an older version have no hours.
    """

    number: int
    cells: Counts
    hours: Counts = ()

    def billable(self, first: int, end: int) -> int:
        """Returns how much of it is billable, from the day `first` to before the day `end`."""
        return sum(n for day, _, outcome, n in self.cells if outcome in BILLABLE and first <= day < end)


# Numbers begin at 1; this batch only reads totals.
NO_BATCH = UsageBatch(0, ())
