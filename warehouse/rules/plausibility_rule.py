"""Types of rules on well-formed data that may be wrong, in one release or compared with an earlier one. All are SQL.

Limits were set from two real national drops, with room for revisions, new years and new places. Figures that are still
open to revision (forecasts, and the latest years) may change twice as much as others. The share of failing ZIP codes
may be ten times as large in a single state as in the whole country.
"""

from typing import Literal

from warehouse.rules.rule import Rule, Unit
from warehouse.schema.tables import ALIASES, LOCATIONS


class PlausibilityRule(Rule, frozen=True, kw_only=True):
    """A rule on totals, cells or places. Its statement has its name, with underscores for hyphens.

    For totals, the statement returns a row for each state (or NULL) and figure beyond the limit: the measured value,
    the number of ZIP codes, a line of text. For cells, it returns the failing figures of single ZIP codes. For places,
    it returns the failing ZIP codes.
    """

    asks: Literal["totals", "cells", "places"]
    among: str = "new_places"  # FROM expression for all ZIP codes, of which the failing ones are a share
    compares: bool = True  # with the previous release
    told: str  # the finding in words: "`told` in TX", or "12 of 42,094 ZIP codes `told`"
    cause: str  # its likely cause
    override: bool = True
    unit: Unit = "share"
    by_state: bool = True
    remedy: str | None = "check the export against its source"

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

    asks: Literal["totals", "cells", "places"] = "totals"


class CellRule(PlausibilityRule, frozen=True, kw_only=True):
    """A rule on figures of single ZIP codes, which are counted."""

    asks: Literal["totals", "cells", "places"] = "cells"
    by_state: bool = False
    unit: Unit = "ZIP codes"


class PlaceRule(PlausibilityRule, frozen=True, kw_only=True):
    """A rule on places of one release. The failing share may be ten times as large in a state as in the country."""

    asks: Literal["totals", "cells", "places"] = "places"
    compares: bool = False
    state_factor: int = 10


class PlaceChangeRule(PlaceRule, frozen=True, kw_only=True):
    """A rule on how the places of the previous release changed."""

    among: str = "old_places"
    compares: bool = True
