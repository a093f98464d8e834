"""Batches: usage of one key that is stored at once; and how a request counts."""

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


def outcome_of(status: int, outcome: str) -> UsageOutcome | None:
    """Returns how a request by a known key in a data area counts, by its status and the reply's `outcome`.

    None if it does not count: our own failures (5xx) are in the metrics and never billed, and a 401 belongs to no key.
    A 429 is `limited`; every other 4xx except 404 is `rejected`: 400, 403 and 405.
    """
    if status in (200, 206):
        return "answered_empty" if outcome == "answered_empty" else "answered"
    if status == 304:
        return "not_modified"
    if status == 404:
        return "not_found"
    if status == 429:
        return "limited"
    return "rejected" if 400 <= status < 500 and status != 401 else None


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
