"""All rules by name, the limits in force, and the findings that rules make."""

import math
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import msgspec

from warehouse.rules.drift_rules import DRIFT_RULES
from warehouse.rules.file_rules import COLUMN_RULES, FILE_RULES
from warehouse.rules.plausibility_rules import FIGURE_RULES, PLACE_RULES
from warehouse.rules.row_rules import ROW_RULES
from warehouse.rules.rule import Rule, Unit
from warehouse.schema.errors import WarehouseError
from warehouse.schema.findings import COUNTRY, Finding

NO_LIMIT = 1e9
_FEW_STATES = 3

# Causes before consequences: folding.py relies on the order.
RULES: dict[str, Rule] = {
    rule.name: rule for rule in (*FILE_RULES, *COLUMN_RULES, *ROW_RULES, *PLACE_RULES, *FIGURE_RULES, *DRIFT_RULES)
}


def make_finding(name: str, message: str, **members: Any) -> Finding:
    """Returns a finding of rule `name`, with its severity and remedy. `members` are other fields of `Finding`."""
    rule = RULES[name]
    remedy = members.pop("remedy", rule.remedy)
    found = Finding(severity=rule.severity, rule=name, message=message, remedy=remedy, **members)
    if not rule.override:
        return found
    accept = offer(accept_options(found))
    return msgspec.structs.replace(found, remedy=f"{remedy}; {accept}" if remedy else accept)


def offer(options: Iterable[str]) -> str:
    """Returns the part of a remedy that says how to publish in spite of an error."""
    return f"if it is right, publish with {' '.join(options)} --reason TEXT"


def accept_options(finding: Finding) -> list[str]:
    """Returns the options that accept a finding, bounded just above the measured value.

    If the finding concerns only a few states, they name these states.
    """
    rule, measured, states = RULES[finding.rule], finding.measured, finding.measured_in
    if rule.limit is None:
        return [f"--accept {rule.name}"]
    if states and COUNTRY not in states and len(states) <= _FEW_STATES:
        return [f"--accept {rule.name}:{state}={_bound(rule, states[state])}" for state in sorted(states)]
    return [f"--accept {rule.name}={'LIMIT' if measured is None else _bound(rule, measured)}"]


def shown_limit(unit: Unit, limit: float) -> str:
    """Returns a limit in words, such as "5%" or "50,000 rows"."""
    return f"{limit * 100:,.4g}%" if unit == "share" else f"{limit:,.0f} {unit}"


def _bound(rule: Rule, measured: float) -> str:
    return f"{math.ceil(round(measured * 1000, 6)) / 10:g}%" if rule.unit == "share" else f"{math.ceil(measured)}"


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns a suffix for a message about an unknown name: similar names, or an empty string."""
    close = get_close_matches(name.lower().replace("_", "-"), list(known), n=2)
    return f" (did you mean {' or '.join(close)}?)" if close else ""


class RuleLimits:
    """The limits in force for one publish: those that were set, and the defaults of the other rules."""

    def __init__(self, settings: Mapping[str, float] | None = None) -> None:
        """Raises WarehouseError if `settings` names a rule without a limit."""
        limited = [rule.name for rule in RULES.values() if rule.limit is not None]
        unknown = sorted(set(settings or ()) - set(limited))
        if unknown:
            near = nearest(unknown[0], limited)
            raise WarehouseError(f"no limit is called {unknown[0]}{near}; `forecast extracts rules` lists all")
        self._set = dict(settings or {})
        for name, limit in self._set.items():
            _check_unit(RULES[name], limit)

    def __getitem__(self, name: str) -> float:
        limit = self._set.get(name, RULES[name].limit)
        if limit is None:
            raise KeyError(name)
        return limit


def _check_unit(rule: Rule, limit: float) -> None:
    """Raises WarehouseError if a limit is probably a mistake: 8 for 8%, or 5% of a count."""
    if rule.unit == "share" and 1 < limit < NO_LIMIT:
        raise WarehouseError(f"the limit of {rule.name} is {limit:.0%}: a share is at most 100%, or 1e9 for no limit")
    if rule.unit != "share" and 0 < limit < 1:
        raise WarehouseError(f"the limit of {rule.name} is a number of {rule.unit}, not {limit:g}")
