"""What earlier releases say about a drop: whether it was delivered before, and what slow drift is measured against."""

from collections.abc import Mapping, Sequence
from datetime import date

from warehouse.releases.catalog import Catalog, Manifest, TableInfo
from warehouse.rules.all_rules import make_finding
from warehouse.schema.findings import Finding

# Somebody accepted what these rules found, so slow changes are measured from there on.
_REBASED_BY = frozenset(
    (
        "total-drift",
        "state-drift",
        "slow-drift",
        "uniform-scale",
        "slow-loss",
        "coverage-lost",
        "coverage-lost-in-state",
        "coverage-lost-in-county",
        "zip-codes-lost",
    )
)
_MOST_OF_A_MONTH = 20  # days
_HALF_A_YEAR = 6  # months; a month's number does not say of which year it is


def kept_releases(catalog: Catalog, current: Manifest) -> list[Manifest]:
    """`current` and the releases kept before it that can be compared with it, newest first."""
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
    """The oldest of the `kept_releases`, or the last whose changes somebody accepted. None: it is the current one."""
    baseline = None
    for manifest in kept:
        baseline = manifest
        if manifest.acceptance is not None and _REBASED_BY & set(manifest.acceptance.rules):
            break
    return baseline if baseline is not kept[0] else None


def delivered_before(kept: Sequence[Manifest], brought: Mapping[str, TableInfo]) -> list[Finding]:
    """A finding if tables of the drop are those of an older one of the `kept_releases`, and not of the current."""
    found: dict[str, list[str]] = {}
    for name, info in brought.items():
        if _has(kept[0], name, info):
            continue
        owner = next((one for one in kept if _has(one, name, info)), None)
        if owner is not None:
            found.setdefault(owner.id, []).append(name)
    return [
        make_finding(
            "delivered-before",
            f"{', '.join(names)} {'are those' if len(names) > 1 else 'is that'} of {release}, "
            f"which newer releases replaced; the drop, or a part of it, was delivered before",
            table=names[0] if len(names) == 1 else None,
            count=len(names),
        )
        for release, names in found.items()
    ]


def older_than_current(current: Manifest, brought: Mapping[str, TableInfo]) -> list[Finding]:
    """A finding if tables of the drop carry an earlier date or month than those of `current`."""
    older = []
    for name, info in brought.items():
        known = current.tables.get(name)
        if known is None:
            continue
        days = _days(known.as_of, info.as_of)
        months = (known.month - info.month) % 12 if info.month and known.month else None
        if days is not None and days < 0:
            older.append(f"{name}: {info.as_of}, after {known.as_of}")
        elif months and months < _HALF_A_YEAR:
            older.append(f"{name}: month {info.month}, after month {known.month}")
        elif months == 0 and days is not None and days > _MOST_OF_A_MONTH:
            older.append(f"{name}: month {info.month} again, updated {info.as_of}, after {known.as_of}")
    if not older:
        return []
    message = f"the drop carries an earlier date than {current.id}; it may be an old export"
    return [make_finding("older-than-current", message, count=len(older), samples=tuple(older[:5]))]


def _days(before: str | None, after: str | None) -> int | None:
    return (date.fromisoformat(after) - date.fromisoformat(before)).days if before and after else None


def _has(manifest: Manifest, name: str, info: TableInfo) -> bool:
    kept = manifest.tables.get(name)
    return kept is not None and (kept.rows, kept.checksum) == (info.rows, info.checksum)
