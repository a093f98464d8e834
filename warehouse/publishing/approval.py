"""Checks, when a person approves a held drop, that it has not changed or been overtaken."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from warehouse.releases.catalog import Manifest, TableInfo
from warehouse.rules.all_rules import make_finding
from warehouse.schema.findings import Finding


class SeenWhenHeld(msgspec.Struct, frozen=True):
    """The state of a held drop that the approving person has seen."""

    tables: dict[str, str]  # checksums of their contents
    newer_than: datetime | None  # delivery time; None if it may replace the release of a newer drop


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
