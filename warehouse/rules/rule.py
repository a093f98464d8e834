"""What a rule is. The modules beside this one declare the rules of each stage; all_rules.py collects them."""

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from warehouse.schema.findings import Severity
from warehouse.schema.tables import Column, Table

# Of a limit. A share is a number from 0 to 1, shown in per cent; the others are counted.
Unit = Literal["share", "rows", "ZIP codes", "figures"]

# Figures whose limits are wider: `first_open_year`, and demand.
OPEN_FIGURES = "figures that may still be revised (demand, and years from two years ago on)"
EXPORT_AGAIN = "export it again"
CORRECT = "correct them in the source and export again"


def _nowhere(_: Table) -> Sequence[Column | None]:
    return []


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule for drops. Declared in this folder, constant."""

    name: str
    severity: Severity = "error"
    about: str  # one sentence for `forecast extracts rules`
    remedy: str | None = None  # what to do about a finding
    limit: float | None = None  # default; FORECAST_LIMITS can set another. Larger always means laxer
    unit: Unit = "share"  # of the limit
    by_state: bool = False  # each state is judged by itself
    state_factor: int = 1  # in a state, a finding may go this many times as far as in the country
    override: bool = False  # --accept can let its findings through; if there is a limit, up to another limit
    explains: tuple[str, ...] = ()  # rules whose findings are likely to follow from one of this rule
    # of rules on rows, which name SQL in rules.sql:
    offends: str | None = None  # a predicate on one row at fault
    value: str | None = None  # an expression for what is at fault in such a row, if not the value of its column
    faults: str | None = None  # selects the failing rows, where a predicate is not enough
    occurs: str | None = None  # an aggregate that tells cheaply whether any row is at fault; with `offends`, not needed
    summary: str | None = None  # sums up the failing rows; unset: sum_up_rows
    message: str = ""  # template for what `summary` found
    concerns: Callable[[Table], Sequence[Column | None]] = _nowhere  # columns to check; None: the table as a whole

    @property
    def acceptable(self) -> bool:
        """Whether its findings can be published: its errors can be overridden, or it makes none by itself."""
        return self.override or self.severity != "error"

    @property
    def statements(self) -> tuple[str, ...]:
        """The names of the SQL of a rule on rows; empty for other rules."""
        named = (self.offends, self.value, self.faults, self.occurs, self.summary)
        return tuple(name for name in named if name is not None)
