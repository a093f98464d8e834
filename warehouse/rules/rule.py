"""The `Rule` type. The modules beside this one declare the rules of each stage; all_rules.py collects them."""

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from warehouse.schema.findings import Severity
from warehouse.schema.tables import ALIASES, LOCATIONS, Column, Table

# What a rule needs besides the drop: no more, a release to compare with, the inbox, or a publish that builds a release.
Needs = Literal["drop", "release", "inbox", "publish"]

# The unit of a limit. A share is a number from 0 to 1, shown in per cent; the others are counts.
Unit = Literal["share", "rows", "ZIP codes", "figures"]

# Figures with wider limits: those from `first_open_year` on, and demand.
OPEN_FIGURES = "figures that may still be revised (demand, and years from two years ago on)"
EXPORT_AGAIN = "export it again"
CHECK_SOURCE = "check the export against its source"
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
    state_factor: int = 1  # a state's limit is this many times the national limit
    override: bool = False  # --accept can accept its findings; if the rule has a limit, up to another limit
    applies: Needs = "drop"  # without what it needs, it makes no finding
    explains: tuple[str, ...] = ()  # rules whose findings are likely to follow from one of this rule
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
    def needs(self) -> Needs:
        return self.applies

    @property
    def statements(self) -> tuple[str, ...]:
        """The names of the SQL of a rule on rows; empty for other rules."""
        named = (self.offends, self.value, self.faults, self.occurs, self.summary)
        return tuple(name for name in named if name is not None)


class PlausibilityRule(Rule, frozen=True, kw_only=True):
    """A rule on totals, cells or places. Its statement has its name, with underscores for hyphens.

    For totals, the statement returns a row for each state (or NULL) and figure beyond the limit: the measured value,
    the number of ZIP codes, a line of text. For cells, it returns the failing figures of single ZIP codes. For places,
    it returns the failing ZIP codes.
    """

    checks: Literal["totals", "cells", "places"]
    among: str = "new_places"  # FROM expression for all ZIP codes, of which the failing ones are a share
    compares: bool = True  # with the previous release
    derived: bool = False  # its figures look wrong beside others, which may be the wrong ones
    finding: str  # in words: "`finding` in TX", or "12 of 42,094 ZIP codes `finding`"
    cause: str  # its likely cause
    override: bool = True
    unit: Unit = "share"
    by_state: bool = True
    remedy: str | None = CHECK_SOURCE

    @property
    def needs(self) -> Needs:
        return "release" if self.compares else "drop"

    @property
    def table(self) -> str:
        """The table of the places that it checks."""
        return ALIASES.name if "alias" in self.name else LOCATIONS.name

    @property
    def query(self) -> str:
        """The name of the statement."""
        return self.name.replace("-", "_")


class TotalRule(PlausibilityRule, frozen=True, kw_only=True):
    """A rule on the totals of states."""

    checks: Literal["totals", "cells", "places"] = "totals"


class CellRule(PlausibilityRule, frozen=True, kw_only=True):
    """A rule on figures of single ZIP codes, which are counted."""

    checks: Literal["totals", "cells", "places"] = "cells"
    by_state: bool = False
    unit: Unit = "ZIP codes"


class PlaceRule(PlausibilityRule, frozen=True, kw_only=True):
    """A rule on places of one release. The failing share may be ten times as large in a state as in the country."""

    checks: Literal["totals", "cells", "places"] = "places"
    compares: bool = False
    state_factor: int = 10


class PlaceChangeRule(PlaceRule, frozen=True, kw_only=True):
    """A rule on how the places of the previous release changed."""

    among: str = "old_places"
    compares: bool = True
