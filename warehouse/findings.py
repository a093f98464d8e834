"""What validation has to say about a drop."""

from typing import Literal

import msgspec

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that is wrong, or worth knowing, about a drop.

    `count` is the number of rows (or columns, or files) concerned; `samples` shows at most five of them.
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


class Report(msgspec.Struct, frozen=True):
    """All findings of one drop, worst first."""

    findings: tuple[Finding, ...]

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


def report(findings: list[Finding]) -> Report:
    return Report(tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))))
