"""Options for publishing a drop, and the outcome."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import msgspec

from warehouse.releases.catalog import Manifest, Origin, TableInfo
from warehouse.rules.acceptance import check_acceptance, check_hold, check_severities
from warehouse.rules.all_rules import RuleLimits, make_finding
from warehouse.rules.failures import FailureFile
from warehouse.schema.errors import DropError
from warehouse.schema.findings import Acceptance, Finding, Severity, ValidationReport
from warehouse.schema.tables import TABLES

# "held": refused, but a person may approve it; "passed": a dry run without errors
Result = Literal["published", "already_current", "refused", "held", "passed"]


class SeenWhenHeld(msgspec.Struct, frozen=True):
    """The state of a held drop that the approving person has seen."""

    tables: dict[str, str]  # checksums of their contents
    newer_than: datetime | None  # delivery time; None if it may replace the release of a newer drop


class PublishOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to publish. Created by the caller for one publish."""

    attribution: tuple[str, ...] = ()  # used if the files name no sources
    limits: dict[str, float] = {}  # by rule
    severities: dict[str, Severity] = {}  # by rule
    strict: bool = False  # warnings reject the drop as well
    withdrawn: tuple[str, ...] = ()  # tables to leave out
    required: tuple[str, ...] = ()  # tables that the drop must bring
    hold: tuple[str, ...] = ()  # rules whose findings, at any severity, hold the drop for approval
    acceptance: Acceptance | None = None
    seen: SeenWhenHeld | None = None  # for a held drop that is approved now
    origin: Origin | None = None
    failures: str | None = None  # a folder for all failing rows; files of an earlier run there are replaced
    compared: bool = True  # False: the drop is checked as if nothing had been published
    partial: bool = False  # needed tables may be missing; for a check only

    def check(self) -> None:
        """Raises WarehouseError if a limit, severity, rule to hold, acceptance or withdrawn table is invalid."""
        RuleLimits(self.limits)
        check_severities(self.severities)
        check_hold(self.hold)
        check_acceptance(self.acceptance)
        optional = [one.name for one in TABLES if not one.needed]
        for name in self.withdrawn:
            if name not in optional:
                raise DropError(f"{name} cannot be withdrawn: only {', '.join(optional)} can")


class PublishOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome for a drop. Created once for each publish or dry run."""

    result: Result
    report: ValidationReport
    manifest: Manifest | None  # of the release that is current now
    failures: tuple[FailureFile, ...] = ()  # files of all failing rows, if requested
    tables: dict[str, str] = {}  # that the drop brings: checksums of their contents, regardless of the order of rows


def approval_findings(seen: SeenWhenHeld, tables: Mapping[str, TableInfo], current: Manifest | None) -> list[Finding]:
    """Returns findings if the drop's contents have changed, or if a newer drop went live."""
    findings = []
    found = {name: info.checksum for name, info in tables.items()}
    changed = sorted(name for name in seen.tables.keys() | found if seen.tables.get(name) != found.get(name))
    if changed:
        message = f"the drop has changed since it was held: {', '.join(changed)}"
        remedy = "move it back into the inbox to validate it again"
        findings.append(make_finding("changed-file", message, count=len(changed), remedy=remedy))
    if current is not None and seen.newer_than is not None and current.delivered > seen.newer_than:
        findings.append(
            make_finding(
                "overtaken",
                f"it was delivered {seen.newer_than:%Y-%m-%d %H:%M} UTC; the drop of the current release, "
                f"{current.id}, was delivered {current.delivered:%Y-%m-%d %H:%M} UTC",
                remedy="approve it with --over-newer, or discard it",
            )
        )
    return findings
