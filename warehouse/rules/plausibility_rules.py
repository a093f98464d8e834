"""Rules on data that is well-formed and may be wrong. Each is one statement, with the rule in its header.

place_rules.sql has those on locations and aliases, figure_rules.sql those on figures.
"""

from typing import Any, Literal

import msgspec

from warehouse import sql
from warehouse.rules.rule import CHECK_SOURCE, Rule
from warehouse.schema.tables import ALIASES, LOCATIONS


class PlausibilityRule(Rule, frozen=True, kw_only=True):
    """A rule on totals, cells or places.

    For totals, the statement returns a row for each state (or NULL) and figure beyond the limit: the measured value,
    the number of ZIP codes, a line of text. For cells, it returns the failing figures of single ZIP codes, which are
    counted. For places, it returns the failing ZIP codes; their share may be larger in a state than in the country.
    """

    checks: Literal["totals", "cells", "places"]
    query: str  # the statement
    among: str  # FROM expression for all ZIP codes, of which the failing ones are a share
    since: Literal["current", "baseline"] = (
        "current"  # the baseline: the oldest release kept, or one with accepted changes
    )
    open_factor: int = 1  # the limit of figures that may still be revised is this many times as large
    few: bool = False  # also judges countries of a few ZIP codes
    derived: bool = False  # its figures look wrong beside others, which may be the wrong ones
    finding: str  # in words: "`finding` in TX", or "12 of 42,094 ZIP codes `finding`"
    cause: str  # its likely cause

    @property
    def table(self) -> str:
        """The table of the places that it checks."""
        return ALIASES.name if "aliases" in self.among else LOCATIONS.name


def _declared_in(file: str) -> tuple[PlausibilityRule, ...]:
    return tuple(_rule(one) for one in sql.statements().values() if one.file == file)


def _rule(statement: sql.Statement) -> PlausibilityRule:
    """Returns the rule in the header of a statement. Its description begins with what the rule checks."""
    checks, *options = statement.header["rule"].split()
    fields: dict[str, Any] = {
        "name": statement.name.replace("_", "-"),
        "about": statement.description.partition(". ")[0].removesuffix(".") + ".",
        "remedy": CHECK_SOURCE,
        "override": True,
        "checks": checks,
        "query": statement.name,
        "by_state": checks != "cells",
        "state_factor": 10 if checks == "places" else 1,
        "open_factor": 2 if checks == "cells" else 1,
        "unit": "ZIP codes" if checks == "cells" else "share",
        "applies": "drop" if checks == "places" else "release",
        **dict(option.split("=") for option in options),
        **{key: text for key, text in statement.header.items() if key != "rule"},
    }
    fields.setdefault("among", "old_places" if fields["applies"] == "release" else "new_places")
    for key in ("of", "explains"):
        fields[key] = fields.get(key, "" if checks == "places" or key == "explains" else "figures").split()
    return msgspec.convert(fields, PlausibilityRule, strict=False)


PLACE_RULES = _declared_in("place_rules.sql")
FIGURE_RULES = _declared_in("figure_rules.sql")
