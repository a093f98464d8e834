"""All rules by name, the limits in force, and the findings that rules make."""

import math
from collections.abc import Mapping
from typing import Any

from warehouse.rules.drift_rules import DRIFT_RULES
from warehouse.rules.file_rules import COLUMN_RULES, FILE_RULES
from warehouse.rules.plausibility_rules import PLAUSIBILITY_RULES
from warehouse.rules.row_rules import ROW_RULES
from warehouse.rules.rule import Rule, Unit
from warehouse.schema.errors import WarehouseError
from warehouse.schema.findings import Finding

RULES: dict[str, Rule] = {
    rule.name: rule for rule in (*FILE_RULES, *COLUMN_RULES, *ROW_RULES, *DRIFT_RULES, *PLAUSIBILITY_RULES)
}


def make_finding(name: str, message: str, **members: Any) -> Finding:
    """A finding of rule `name`, with the rule's severity and remedy. `members` are other fields of `Finding`."""
    rule = RULES[name]
    remedy = members.pop("remedy", rule.remedy)
    if rule.override:
        accept = f"if it is right, publish with --accept {name}{_bound(rule, members.get('measured'))} --reason TEXT"
        remedy = f"{remedy}; {accept}" if remedy else accept
    return Finding(severity=rule.severity, rule=name, message=message, remedy=remedy, **members)


def shown_limit(unit: Unit, limit: float) -> str:
    """A limit in words, such as "5%" or "50,000 rows"."""
    return f"{limit * 100:,.4g}%" if unit == "share" else f"{limit:,.0f} {unit}"


def _bound(rule: Rule, measured: float | None) -> str:
    """The bound to accept, just above what was measured: ``=7.4%``."""
    if rule.limit is None:
        return ""
    if measured is None:
        return "=LIMIT"
    return f"={math.ceil(measured * 1000) / 10:g}%" if rule.unit == "share" else f"={math.ceil(measured)}"


class RuleLimits:
    """The limits in force for one publish: those that were set, and the defaults of the other rules."""

    def __init__(self, settings: Mapping[str, float] | None = None) -> None:
        """Raises WarehouseError if `settings` names a rule without a limit."""
        limited = [rule.name for rule in RULES.values() if rule.limit is not None]
        unknown = sorted(set(settings or ()) - set(limited))
        if unknown:
            raise WarehouseError(f"no limit is called {unknown[0]}; the limits are {', '.join(limited)}")
        self._set = dict(settings or {})

    def __getitem__(self, name: str) -> float:
        limit = self._set.get(name, RULES[name].limit)
        if limit is None:
            raise KeyError(name)
        return limit
