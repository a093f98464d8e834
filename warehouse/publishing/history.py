"""What earlier releases say about a drop: whether it was delivered before, and what slow drift is measured against."""

from collections.abc import Iterator, Mapping
from datetime import date

from warehouse.releases.catalog import Catalog, Manifest, TableInfo
from warehouse.rules.all_rules import make_finding
from warehouse.schema.findings import Finding

# Somebody accepted what these rules found, so drift is measured from there on.
_DRIFT = frozenset(("total-drift", "state-drift", "slow-drift", "uniform-scale"))
_MOST_OF_A_MONTH = 20  # days
_HALF_A_YEAR = 6  # months; a month's number does not say of which year it is


def baseline_of(catalog: Catalog, current: Manifest) -> Manifest | None:
    """The oldest release kept before `current`, or the last one whose drift was accepted. None: there is none."""
    baseline = None
    for manifest in _until(catalog, current):
        baseline = manifest
        if manifest.acceptance is not None and _DRIFT & set(manifest.acceptance.rules):
            break
    return baseline if baseline is not None and baseline.id != current.id else None


def delivered_before(catalog: Catalog, current: Manifest, brought: Mapping[str, TableInfo]) -> list[Finding]:
    """A finding if tables of the drop are those of an older release, and not those of `current`."""
    found: dict[str, list[str]] = {}
    for name, info in brought.items():
        if _has(current, name, info):
            continue
        owner = next((one for one in _until(catalog, current) if _has(one, name, info)), None)
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


def _until(catalog: Catalog, current: Manifest) -> Iterator[Manifest]:
    """`current` and the releases before it that can be compared with it, newest first."""
    for manifest in catalog.all():
        if manifest.published_at <= current.published_at and manifest.illustrative == current.illustrative:
            yield manifest
