"""What must still hold of a drop that was held when a person approves it."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from warehouse.releases.catalog import Manifest, TableInfo
from warehouse.rules.all_rules import make_finding
from warehouse.schema.findings import Finding


class SeenWhenHeld(msgspec.Struct, frozen=True):
    """What a person who approves a held drop has seen of it."""

    tables: dict[str, str]  # checksums of their contents
    newer_than: datetime | None  # when it was delivered; None if it may replace the release of a newer drop


def approval_findings(seen: SeenWhenHeld, tables: Mapping[str, TableInfo], current: Manifest | None) -> list[Finding]:
    """Findings if the drop has other contents now, or if a newer one went live."""
    findings = []
    found = {name: info.checksum for name, info in tables.items()}
    changed = sorted(name for name in seen.tables.keys() | found if seen.tables.get(name) != found.get(name))
    if changed:
        message = f"the drop has changed since it was held: {', '.join(changed)}"
        remedy = "move it back into the inbox, to be validated and held again"
        findings.append(make_finding("changed-file", message, count=len(changed), remedy=remedy))
    if current is not None and seen.newer_than is not None and current.delivered > seen.newer_than:
        findings.append(
            make_finding(
                "overtaken",
                f"it was delivered {seen.newer_than:%Y-%m-%d %H:%M} UTC; {current.id}, which is current, has a drop of "
                f"{current.delivered:%Y-%m-%d %H:%M} UTC",
                remedy="approve it with --over-newer, or discard it",
            )
        )
    return findings
