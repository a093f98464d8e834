"""Compares a drop with earlier releases: whether it was delivered before, and the baseline for slow drift."""

from collections.abc import Mapping, Sequence
from datetime import date

from warehouse.drops.messages import ReadResult
from warehouse.releases.catalog import Catalog, Manifest, TableInfo
from warehouse.rules.all_rules import make_finding
from warehouse.schema.findings import Finding

# If findings of these rules were accepted, slow changes are measured from that release on.
_REBASED_BY = {"total-drift", "slow-drift", "uniform-scale", "slow-loss", "coverage-lost", "zip-codes-lost"}
_MOST_OF_A_MONTH = 20  # days
_HALF_A_YEAR = 6  # months; MONTH_CODE has no year


def kept_releases(catalog: Catalog, current: Manifest) -> list[Manifest]:
    """Returns `current` and the releases kept before it that can be compared with it, newest first."""
    return [
        current,
        *(
            manifest
            for manifest in catalog.all()
            if manifest.id != current.id
            and manifest.published_at <= current.published_at
            and manifest.illustrative == current.illustrative
        ),
    ]


def baseline_of(kept: Sequence[Manifest]) -> Manifest | None:
    """Returns the oldest of the `kept_releases`, or the last whose changes were accepted.

    None: it is the current one.
    """
    baseline = None
    for manifest in kept:
        baseline = manifest
        if manifest.acceptance is not None and _REBASED_BY & set(manifest.acceptance.rules):
            break
    return baseline if baseline is not kept[0] else None


def delivered_before(kept: Sequence[Manifest], brought: Mapping[str, TableInfo]) -> list[Finding]:
    """Returns findings on tables of an older one of the `kept_releases`, and on those that have only another date."""
    found: dict[str, list[str]] = {}
    same = [name for name, info in brought.items() if _has(kept[0], name, info)]
    for name, info in brought.items():
        owner = next((one for one in kept if _has(one, name, info)), None)
        if owner is not None and name not in same:
            found.setdefault(owner.id, []).append(name)
    findings = [
        make_finding(
            "delivered-before",
            f"{', '.join(names)} {'are those' if len(names) > 1 else 'is that'} of {release}, "
            f"which newer releases replaced; the drop, or a part of it, was delivered before",
            table=names[0] if len(names) == 1 else None,
            count=len(names),
        )
        for release, names in found.items()
    ]
    dated = [name for name in same if _date_of(brought[name]) not in ((None, None), _date_of(kept[0].tables[name]))]
    if dated and len(same) < len(brought):
        message = f"{', '.join(dated)}: a new date, but the rows of the current release; an old table may be sent again"
        findings.append(make_finding("unchanged-table", message, count=len(dated)))
    return findings


def _date_of(info: TableInfo) -> tuple[str | None, int | None]:
    return info.as_of, info.month


def older_than_current(kept: Sequence[Manifest], read: ReadResult) -> list[Finding]:
    """Returns findings if tables of the drop carry an earlier date or month than before, or none any more.

    Each table is compared with the newest of the `kept_releases` that has its date: releases without one are skipped.
    """
    older = []
    newest, is_newer = _newest(read.tables), False
    for name, info in read.tables.items():
        known = [manifest.tables[name] for manifest in kept if name in manifest.tables]
        dated = next((one for one in known if one.as_of), info)
        numbered = next((one for one in known if one.month), info)
        days = _days(dated.as_of, info.as_of)
        owner = next((manifest.tables for manifest in kept if manifest.tables.get(name) == numbered), {})
        days_of_month = _days(_newest(owner), newest)
        months = (numbered.month - info.month) % 12 if info.month and numbered.month else None
        if days is not None and days < 0:
            older.append(f"{name}: {info.as_of}, after {dated.as_of}")
        elif months and months < _HALF_A_YEAR:
            older.append(f"{name}: month {info.month}, after month {numbered.month}")
            is_newer |= bool(days_of_month and days_of_month > 0)
        elif months == 0 and days_of_month is not None and days_of_month > _MOST_OF_A_MONTH:
            older.append(f"{name}: month {info.month} again, updated {newest}, after {_newest(owner)}")
            is_newer = True
    if not older:
        return _undated(kept[0], read)
    message = "the drop carries an earlier date than the releases before it; it may be an old export"
    if is_newer:
        message = (
            "MONTH_CODE is old, although UPDATED_AT is new; months may be counted from 0, or it may be an old export"
        )
    found = make_finding("older-than-current", message, count=len(older), samples=tuple(older[:5]))
    return [found, *_undated(kept[0], read)]


def _undated(current: Manifest, read: ReadResult) -> list[Finding]:
    """Returns a finding if tables that carry a date in `current` have none, unless another finding covers the date."""
    unreadable = {finding.table for finding in read.findings if finding.rule == "unreadable-date"}
    undated = [
        f"{name}: none, after {known.as_of or f'month {known.month}'}"
        for name, known in sorted(current.tables.items())
        if (known.as_of or known.month)
        and name in read.tables
        and read.tables[name].rows  # an empty table has an error already
        and name not in unreadable
        and not (read.tables[name].as_of or read.tables[name].month)
    ]
    if not undated:
        return []
    message = f"{len(undated)} table(s) carried a date in {current.id} and carry none now"
    return [make_finding("missing-date", message, count=len(undated), samples=tuple(undated))]


def _newest(tables: Mapping[str, TableInfo]) -> str | None:
    return max((info.as_of for info in tables.values() if info.as_of), default=None)


def _days(before: str | None, after: str | None) -> int | None:
    return (date.fromisoformat(after) - date.fromisoformat(before)).days if before and after else None


def _has(manifest: Manifest, name: str, info: TableInfo) -> bool:
    kept = manifest.tables.get(name)
    return kept is not None and (kept.rows, kept.checksum) == (info.rows, info.checksum)
