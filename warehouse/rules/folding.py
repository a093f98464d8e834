"""Folds errors below their cause: correcting the cause corrects them, and accepting it can accept them too."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, takewhile

import msgspec

from warehouse.rules.all_rules import RULES, accept_options, offer
from warehouse.rules.plausibility_rules import PlausibilityRule
from warehouse.schema.findings import COUNTRY, Finding
from warehouse.schema.tables import ALIASES, HOUSING, HOUSING_FIGURES, LOCATIONS, POPULATION

_PLACES = (LOCATIONS.name, ALIASES.name)
_RANK = {name: rank for rank, name in enumerate(RULES)}


def fold(findings: Sequence[Finding]) -> list[Finding]:
    """Returns the findings. An error that probably follows from another error names it and has no remedy of its own.

    The remedy of a cause that can be accepted also accepts its consequences: if only the cause were accepted, they
    would refuse the drop. Once the cause is accepted, its consequences are findings of their own.
    """
    errors = [one for one in findings if one.severity == "error" and one.follows is None]
    ranked: dict[str, list[Finding]] = {}
    for one in sorted(errors, key=lambda one: _RANK[one.rule]):
        ranked.setdefault(one.rule, []).append(one)
    is_outweighed = {
        rule: all(any(_outweighs(others, one) for others in ranked.values()) for one in found)
        for rule, found in ranked.items()
    }
    by_rule = {rule: ranked[rule] for rule in sorted(ranked, key=is_outweighed.__getitem__)}  # outweighed ones last
    causes = {id(one): _cause(one, by_rule) for one in errors}
    # a rule is a consequence itself if all its findings have a cause
    above = {
        rule: causes[id(found[0])] if all(causes[id(one)] for one in found) else None for rule, found in by_rule.items()
    }
    folded = {id(one): one for one in findings}
    for one in errors:
        top = causes[id(one)]
        while top and above[top]:
            top = above[top]
        if top:
            folded[id(one)] = msgspec.structs.replace(one, follows=top, remedy=None)
    listed = [folded[id(one)] for one in findings]
    return [_with_consequences(finding, listed) for finding in listed]


def _cause(finding: Finding, errors: Mapping[str, Sequence[Finding]]) -> str | None:
    """Returns the first rule that explains or outweighs `finding`. `errors` are all errors, by rule, causes first."""
    if not RULES[finding.rule].acceptable:
        return None
    unreadable = _unreadable_cause(finding, [one for found in errors.values() for one in found])
    above = takewhile(lambda item: item[0] != finding.rule, errors.items())
    return unreadable or next(
        (rule for rule, found in above if _explain(found, finding) or _outweighs(found, finding)), None
    )


def _outweighs(found: Sequence[Finding], finding: Finding) -> bool:
    """Returns whether `finding` is there by chance: a later rule has four times its rows, or thrice its states.

    Its own rule is more specific, but applies to a small part of what is wrong.
    """
    cause, rule = RULES[found[0].rule], RULES[finding.rule]
    if _RANK[rule.name] >= _RANK[cause.name] or not {*cause.of, *cause.explains}.intersection(rule.of):
        return False
    if finding.table in _PLACES:
        rows = sum(one.count for one in found)
        return cause.by_state and found[0].table == finding.table and rows > 4 * finding.count
    states = {state for one in found for state in one.measured_in} - {COUNTRY}
    few = finding.measured_in.keys() - {COUNTRY}
    figures = {figure for one in found for figure in one.figures}
    is_wider = len(states) > 3 * len(few) > 0 and states.issuperset(few) and figures.issuperset(finding.figures)
    return is_wider and "figures" in cause.of and "total" not in cause.of


def _explain(found: Sequence[Finding], finding: Finding) -> bool:
    """Returns whether the findings of one rule explain `finding`, of a later rule that looks at the same subject."""
    cause, rule = RULES[found[0].rule], RULES[finding.rule]
    if _RANK[rule.name] <= _RANK[cause.name] or not {*cause.of, *cause.explains}.intersection(rule.of):
        return False
    count = sum(one.count for one in found)
    states = {state for one in found for state in one.measured_in}
    figures = {figure for one in found for figure in one.figures}
    if states and not states.issuperset(finding.measured_in.keys() - {COUNTRY}):
        return False  # it also concerns states that the cause does not
    if isinstance(cause, PlausibilityRule) and isinstance(rule, PlausibilityRule):
        is_apart = figures.isdisjoint(finding.figures) and not (rule.derived and not cause.derived)
        if figures and finding.figures and is_apart:
            return False
    elif figures:
        return figures.issuperset(finding.figures)
    elif {found[0].table, finding.table}.difference(_PLACES, (None, found[0].table)):
        return False  # it is on another table
    if finding.figures and not isinstance(rule, PlausibilityRule) and found[0].table in _PLACES:
        return count >= finding.count  # a figure is missing in every place
    # a few failing places do not explain many; a ZIP code has two aliases on average
    return finding.table not in _PLACES or (2 if found[0].table == finding.table else 4) * count >= finding.count


def _unreadable_cause(finding: Finding, errors: Iterable[Finding]) -> str | None:
    """Returns the rule of errors that explain `finding`: unreadable data is missing from every comparison.

    If the errors count rows, there must be enough of them. Other errors concern whole files.
    """
    if finding.measured is None:
        return None
    lost = [one for one in errors if not RULES[one.rule].override and _concerns(one, finding)]
    if not all(any(_loses(one, figure) for one in lost) for figure in finding.figures):
        return None
    rows: Counter[tuple[str, str | None]] = Counter()
    for one in lost:
        if not RULES[one.rule].statements:
            return one.rule
        rows[one.rule, one.column] += one.count
    ((rule, _), most) = rows.most_common(1)[0] if rows else (("", None), 0)
    return rule if rows and 2 * most >= finding.count else None


def _concerns(cause: Finding, finding: Finding) -> bool:
    if finding.figures:
        return any(_loses(cause, figure) for figure in finding.figures)
    return cause.table is not None and cause.table == finding.table


def _loses(cause: Finding, figure: str) -> bool:
    """Returns whether an error is on a figure, or on the table that holds it."""
    if cause.table != (HOUSING if figure in HOUSING_FIGURES else POPULATION).name:
        return False
    return cause.column not in HOUSING_FIGURES or cause.column == figure


def _with_consequences(cause: Finding, findings: Iterable[Finding]) -> Finding:
    """Returns a cause whose remedy also accepts its consequences. If one of them cannot be, it accepts nothing."""
    own = offer(accept_options(cause))
    if cause.remedy is None or not cause.remedy.endswith(own):
        return cause
    consequences = [one for one in findings if one.follows == cause.rule and one.severity == "error"]
    if not consequences:
        return cause
    if all(RULES[one.rule].acceptable for one in consequences):
        options = dict.fromkeys(chain.from_iterable(map(accept_options, (cause, *consequences))))
        remedy = cause.remedy.removesuffix(own) + offer(options)
    else:
        remedy = cause.remedy.removesuffix(own).removesuffix("; ")
    return msgspec.structs.replace(cause, remedy=remedy or None)
