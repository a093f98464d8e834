"""What a rule on data is that is well-formed and may be wrong: of one release, or against one before. All are SQL.

Limits were set from two real national drops, with room for revisions, new years and new places. Figures that are still
open to revision (forecasts, and the latest years) may move twice as far as others. In a single state, ten times the
share of ZIP codes may be at fault that may be in the whole country.
"""

from typing import Literal

from warehouse.rules.rule import Rule, Unit
from warehouse.schema.tables import ALIASES, LOCATIONS


class PlausibilityRule(Rule, frozen=True, kw_only=True):
    """A rule on totals, cells or places. Its statement has its name, with underscores for hyphens.

    Of totals, the statement gives a row for each state (or NULL) and figure beyond the limit: how far it goes, how many
    ZIP codes, a line of text. Of cells, it gives the figures at fault of single ZIP codes. Of places, it gives the ZIP
    codes at fault.
    """

    asks: Literal["totals", "cells", "places"]
    among: str = "new_places"  # FROM expression for the ZIP codes that those at fault are a share of
    compares: bool = True  # with the release before
    told: str  # what was found: "`told` in TX", or "12 of 42,094 ZIP codes `told`"
    cause: str  # what it is likely to come from
    override: bool = True
    unit: Unit = "share"
    by_state: bool = True
    remedy: str | None = "check the export against its source"

    @property
    def table(self) -> str:
        """The table of the places that it judges."""
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
    """A rule on places of one release. In a state, ten times the share may fail that may in the country."""

    asks: Literal["totals", "cells", "places"] = "places"
    compares: bool = False
    state_factor: int = 10


class PlaceChangeRule(PlaceRule, frozen=True, kw_only=True):
    """A rule on places of the release before: what became of them."""

    among: str = "old_places"
    compares: bool = True
