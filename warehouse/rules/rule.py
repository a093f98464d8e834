"""The `Rule` type. The modules beside this one declare the rules of each stage; all_rules.py collects them."""

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from warehouse.schema.findings import Severity
from warehouse.schema.tables import Column, Table

# What a rule needs besides the drop: no more, a release to compare with, the inbox, or a publish that builds a release.
Needs = Literal["drop", "release", "inbox", "publish"]

# The unit of a limit. A share is a number from 0 to 1, shown in per cent; the others are counts.
Unit = Literal["share", "rows", "ZIP codes", "figures"]

# What a rule looks at. An error explains later ones on the same subject.
Subject = Literal[
    "zip",
    "state",
    "county",
    "city",
    "point",
    "gap",
    "alias",
    "figures",
    "total",
    "coverage",
    "column",
    "records",
    "date",
]

EXPORT_AGAIN = "export it again"
CHECK_SOURCE = "check the export against its source"


def _nowhere(_: Table) -> Sequence[Column | None]:
    return []


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule for drops. Declared in this folder or in a header of warehouse/sql/, constant.

    `RULES` lists causes before consequences: an error explains those of later rules that share a subject (folding.py).
    """

    name: str
    severity: Severity = "error"
    about: str  # one sentence for `forecast extracts rules`
    remedy: str | None = None  # what to do about a finding
    limit: float | None = None  # default; FORECAST_LIMITS can set another. Larger always means laxer
    unit: Unit = "share"  # of the limit
    by_state: bool = False  # each state is judged by itself
    state_factor: int = 1  # a state's limit is this many times the national limit
    override: bool = False  # --accept can accept its findings; if the rule has a limit, up to another limit
    applies: Needs = "drop"  # without what it needs, it makes no finding
    of: tuple[Subject, ...] = ()  # what it looks at
    explains: tuple[Subject, ...] = ()  # what looks wrong besides if it fails
    # For rules on rows. These fields name statements in rules.sql:
    offends: str | None = None  # a predicate that matches a failing row
    value: str | None = None  # an expression for the failing value in such a row, if not the value of its column
    faults: str | None = None  # selects the failing rows, where a predicate is not enough
    occurs: str | None = None  # a cheap aggregate: whether any row fails; not needed with `offends`
    summary: str | None = None  # sums up the failing rows; unset: sum_up_rows
    message: str = ""  # template for the result of `summary`
    concerns: Callable[[Table], Sequence[Column | None]] = _nowhere  # columns to check; None: the table as a whole

    @property
    def acceptable(self) -> bool:
        """Whether its findings can be published: its errors can be overridden, or it makes none by default."""
        return self.override or self.severity != "error"

    @property
    def statements(self) -> tuple[str, ...]:
        """The names of the SQL of a rule on rows; empty for other rules."""
        named = (self.offends, self.value, self.faults, self.occurs, self.summary)
        return tuple(name for name in named if name is not None)
