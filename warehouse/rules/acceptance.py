"""Severities in force, and people's decisions to publish in spite of errors."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from warehouse.rules.all_rules import RULES, nearest
from warehouse.rules.rule import Rule, Unit
from warehouse.schema.errors import WarehouseError
from warehouse.schema.findings import COUNTRY, Acceptance, Finding, Severity
from warehouse.schema.states import STATES

_LISTED = "`forecast extracts rules` lists all"
_ACCEPTABLE = "`forecast extracts rules` marks the errors that can be; so can warnings and notes"
_STATES = {state.code for state in STATES}


def parse_acceptance(words: Sequence[str], reason: str, by: str, at: datetime) -> Acceptance | None:
    """Returns the acceptance in `words`, such as ``total-drift=8%``, ``total-drift:TX=8%``; None without any.

    Raises:
        WarehouseError: if a rule cannot be accepted, lacks a bound that it needs, or has a bound that it cannot have.
    """
    limits: dict[str, float] = {}
    names: list[str] = []
    for word in words:
        what, bounded, bound = (part.strip() for part in word.partition("="))
        name, _, state = what.partition(":")
        rule = _acceptable(name)
        if state and not (rule.by_state and (state in _STATES or state == COUNTRY)):
            raise WarehouseError(f"--accept {word}: {_misplaced(rule, state)}")
        names.append(name)
        if rule.limit is None:
            if bounded:
                raise WarehouseError(f"{name} has no limit: --accept {name}")
            continue
        if not bound:
            raise _unbounded(rule)
        limits[what] = max(limits.get(what, 0), _number(what, rule.unit, bound))  # several findings of one rule
    return Acceptance(rules=tuple(dict.fromkeys(names)), limits=limits, reason=reason, by=by, at=at) if names else None


def accept_found(findings: Iterable[Finding], reason: str, by: str, at: datetime) -> Acceptance:
    """Returns an acceptance of the errors among `findings`, each up to its measured value, in its states only.

    Raises:
        WarehouseError: if one of them cannot be accepted.
    """
    errors = [finding for finding in findings if finding.severity == "error"]
    rules = {finding.rule: _acceptable(finding.rule) for finding in errors}
    limits: dict[str, float] = {}
    for finding in errors:
        if rules[finding.rule].limit is None or finding.measured is None:
            continue
        places = {f"{finding.rule}:{where}": measured for where, measured in finding.measured_in.items()}
        for what, measured in (places or {finding.rule: finding.measured}).items():
            limits[what] = max(limits.get(what, 0), measured)
    return Acceptance(rules=tuple(rules), limits=limits, reason=reason, by=by, at=at)


def judge(
    findings: Iterable[Finding],
    acceptance: Acceptance | None = None,
    severities: Mapping[str, Severity] | None = None,
    *,
    strict: bool = False,
) -> list[Finding]:
    """Returns the findings with the severities in force. `strict` turns warnings into errors.

    Errors that `acceptance` covers become warnings with its reason, also if `strict` or `severities` made them errors.
    """
    judged = []
    for finding in findings:
        severity = (severities or {}).get(finding.rule, finding.severity)
        if strict and severity == "warning":
            severity = "error"
        if severity == "error" and acceptance is not None and _covers(acceptance, finding):
            judged.append(msgspec.structs.replace(finding, severity="warning", accepted=acceptance.reason))
        else:
            judged.append(msgspec.structs.replace(finding, severity=severity))
    return judged


def check_severities(severities: Mapping[str, Severity]) -> None:
    """Raises WarehouseError if a rule does not exist, or must stay an error because its findings cannot be accepted."""
    for name in severities:
        if name not in RULES:
            raise WarehouseError(f"no rule is called {name}{nearest(name, RULES)}; {_LISTED}")
        rule = RULES[name]
        if rule.severity == "error" and not rule.override:
            raise WarehouseError(f"{name} must stay an error: its findings cannot be published")


def check_acceptance(acceptance: Acceptance | None) -> None:
    """Raises WarehouseError if `acceptance` names a rule that cannot be accepted, or lacks a bound that it needs."""
    for name in acceptance.rules if acceptance else ():
        rule = _acceptable(name)
        bounded = {what.partition(":")[0] for what in acceptance.limits} if acceptance else ()
        if rule.limit is not None and name not in bounded:
            raise _unbounded(rule)


def check_hold(names: Iterable[str]) -> None:
    """Raises WarehouseError if `names` has a rule that no approval can override."""
    for name in names:
        _acceptable(name, "held for approval (FORECAST_INBOX_HOLD)")


def _acceptable(name: str, what: str = "accepted") -> Rule:
    """Returns the rule, if its findings can be published. `what` describes the use in an error message."""
    rule = RULES.get(name)
    if rule is None:
        near = nearest(name, (rule.name for rule in RULES.values() if rule.acceptable))
        raise WarehouseError(f"{name} cannot be {what}: no rule has this name{near}; {_LISTED}")
    if not rule.acceptable:
        raise WarehouseError(f"{name} cannot be {what}: its findings must be corrected; {_ACCEPTABLE}")
    return rule


def _unbounded(rule: Rule) -> WarehouseError:
    """Returns the error for a missing bound. Without one, an acceptance would also cover findings not yet seen."""
    example = "8%" if rule.unit == "share" else "8"
    return WarehouseError(f"{rule.name} needs a bound, such as --accept {rule.name}={example}")


def _covers(acceptance: Acceptance, finding: Finding) -> bool:
    if finding.rule not in acceptance.rules:
        return False
    rule = RULES[finding.rule]
    if rule.limit is None or finding.measured is None:
        return True
    whole = acceptance.limits.get(rule.name, -1.0)
    if not finding.measured_in:
        return finding.measured <= whole
    return all(
        measured
        <= acceptance.limits.get(f"{rule.name}:{where}", whole if where == COUNTRY else whole * rule.state_factor)
        for where, measured in finding.measured_in.items()
    )


def used(acceptance: Acceptance | None, judged: Iterable[Finding]) -> Acceptance | None:
    """Returns the part of `acceptance` that covered a finding; None if none did. Only this part is stored."""
    accepted = {finding.rule for finding in judged if finding.accepted is not None}
    rules = tuple(name for name in acceptance.rules if name in accepted) if acceptance else ()
    if acceptance is None or not rules:
        return None
    limits = {what: bound for what, bound in acceptance.limits.items() if what.partition(":")[0] in accepted}
    return msgspec.structs.replace(acceptance, rules=rules, limits=limits)


def _misplaced(rule: Rule, state: str) -> str:
    if not rule.by_state:
        return f"{rule.name} does not check each state by itself"
    return f"no state has the code {state}; for the country as a whole, write {rule.name}:{COUNTRY}=LIMIT"


def _number(name: str, unit: Unit, text: str) -> float:
    percent = text.endswith("%")
    try:
        number = float(text.removesuffix("%")) / (100 if percent else 1)
    except ValueError:
        number = math.nan
    if not (0 <= number < math.inf) or (percent and unit != "share"):
        wanted = "a share such as 8%" if unit == "share" else f"a number of {unit}"
        raise WarehouseError(f"--accept {name}={text}: expected {wanted}")
    if unit == "share" and number > 1 and not percent:
        raise WarehouseError(f"--accept {name}={text} would be {number:.0%}: write it as a percentage, such as 8%")
    return number
