"""What validation has to say about a drop."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

import msgspec

from warehouse.schema.comparison import Comparison

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong, or worth knowing, about a drop.

    `count` is the number of rows (or columns, or files) concerned; `samples` shows at most five of them. `accepted` is
    the reason that somebody gave for letting an error through; it is a warning then.
    """

    severity: Severity
    rule: str
    message: str
    table: str | None = None
    file: str | None = None
    column: str | None = None
    count: int = 1
    samples: tuple[str, ...] = ()
    remedy: str | None = None
    accepted: str | None = None


class Acceptance(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody let the findings of some rules through."""

    rules: tuple[str, ...]
    reason: str
    by: str
    at: datetime


class ValidationReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """All findings of one drop, worst first, and how it compares with the release that was current."""

    findings: tuple[Finding, ...]
    comparison: Comparison | None = None

    @property
    def refused(self) -> bool:
        return any(finding.severity == "error" for finding in self.findings)

    def count(self, severity: Severity) -> int:
        return sum(finding.severity == severity for finding in self.findings)

    def summary(self) -> str:
        parts = []
        for severity, noun in (("error", "error"), ("warning", "warning"), ("info", "note")):
            number = self.count(severity)  # type: ignore[arg-type]
            if number:
                parts.append(f"{number} {noun}{'s' if number > 1 else ''}")
        return ", ".join(parts) or "no findings"


def make_report(findings: Iterable[Finding], comparison: Comparison | None = None) -> ValidationReport:
    return ValidationReport(tuple(sorted(findings, key=_gravity)), comparison)


def _gravity(finding: Finding) -> tuple[int, bool]:
    # a figure that vanished without anybody meaning it is easily overlooked among warnings
    return SEVERITIES.index(finding.severity), finding.rule != "vanished-figure"


def accept(findings: Iterable[Finding], acceptance: Acceptance | None) -> list[Finding]:
    """The findings, those of accepted rules as warnings that say why."""
    if acceptance is None:
        return list(findings)
    return [
        msgspec.structs.replace(finding, severity="warning", accepted=acceptance.reason)
        if finding.rule in acceptance.rules and finding.severity == "error"
        else finding
        for finding in findings
    ]
