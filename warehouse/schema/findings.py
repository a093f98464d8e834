"""Findings of rules on a drop, and the report that collects them."""

from collections import Counter
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Literal

import msgspec

from warehouse.schema.comparison import Comparison

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
COUNTRY = "country"  # used like the code of a state


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A problem of a drop, or a note on it.

    Created by `make_finding` while a drop is read, compared and warmed. Stored in the report of its release.
    """

    severity: Severity
    rule: str  # the name of the rule
    message: str
    table: str | None = None
    file: str | None = None  # the label of a file (`DropFile`)
    column: str | None = None
    figures: tuple[str, ...] = ()  # all that are missing, or implausible
    count: int = 1  # affected rows, columns, files or ZIP codes
    samples: tuple[str, ...] = ()  # at most five of them; more only if no other list has them
    cause: str | None = None  # the likely cause, such as "leading zero lost", if values show it
    remedy: str | None = None
    measured: float | None = None  # the measured value, in the unit of the rule's limit
    measured_in: dict[str, float] = {}  # the same by state, or COUNTRY, for rules that check each state by itself
    accepted: str | None = None  # the reason for accepting an error, which turns it into a warning
    follows: str | None = None  # the rule whose finding causes this one; correcting that one corrects this one too


class Acceptance(msgspec.Struct, frozen=True, kw_only=True):
    """A person's decision to publish despite errors. Created for one publish, stored in the manifest of its release."""

    rules: tuple[str, ...]  # errors of these rules become warnings
    limits: dict[str, float] = {}  # by rule, or RULE:STATE: findings beyond them, or elsewhere, stay errors
    reason: str
    by: str
    at: datetime


class ValidationReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """All findings on one drop, worst first, and its comparison with the release that was current.

    A finding that follows from another stands below it.

    Created once for a drop by `make_report`, printed, and stored beside the release as findings.json.
    """

    findings: tuple[Finding, ...]
    comparison: Comparison | None = None  # None without a release to compare with

    @property
    def refused(self) -> bool:
        """Whether any finding is an error, so that the drop cannot be published."""
        return any(finding.severity == "error" for finding in self.findings)

    def refused_only_by(self, rules: Collection[str]) -> bool:
        """Returns whether there are errors, and all are of these rules or follow from one of them."""
        errors = [one for one in self.findings if one.severity == "error"]
        return bool(errors) and all(one.rule in rules or one.follows in rules for one in errors)

    def count(self, severity: Severity) -> int:
        return sum(finding.severity == severity for finding in self.findings)

    def summary(self) -> str:
        """Returns the number of findings by severity, such as "1 error, 2 warnings", and of consequences."""
        parts = []
        for kind, noun in (("error", "error"), ("warning", "warning"), ("info", "note"), (None, "consequence")):
            number = sum((None if finding.follows else finding.severity) == kind for finding in self.findings)
            if number:
                parts.append(f"{number} {noun}{'s' if number > 1 else ''}")
        return ", ".join(parts) or "no findings"


def make_report(findings: Iterable[Finding], comparison: Comparison | None = None) -> ValidationReport:
    """Returns the report on `findings`, sorted by severity; the error that explains most comes first, then
    that with the most rows, if both compare states.

    Consequences stand directly below their cause.
    """
    listed = list(findings)
    consequences = Counter(finding.follows for finding in listed if finding.follows)
    ranked = sorted(
        listed, key=lambda one: (*_gravity(one), -consequences[one.rule], -one.count * bool(one.measured_in))
    )
    causes = {finding.rule: finding for finding in ranked if finding.follows is None}  # the last of each rule
    ordered: list[Finding] = []
    for finding in ranked:
        if finding.follows in causes:
            continue
        # without its cause, it is a finding of its own
        ordered.append(msgspec.structs.replace(finding, follows=None) if finding.follows else finding)
        if finding is causes.get(finding.rule):
            ordered += [below for below in ranked if below.follows == finding.rule]
    return ValidationReport(tuple(ordered), comparison)


def _gravity(finding: Finding) -> tuple[int, bool]:
    # the losses of partners, and old tables, come first among the warnings, because they could be overlooked there
    return SEVERITIES.index(finding.severity), finding.rule not in (
        "vanished-figure",
        "lost-figures",
        "unchanged-table",
    )
