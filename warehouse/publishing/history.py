"""What earlier releases say about a drop: whether it was delivered before, and what slow drift is measured against."""

from collections.abc import Iterator, Mapping

from warehouse.releases.catalog import Catalog, Manifest, TableInfo
from warehouse.rules.all_rules import make_finding
from warehouse.schema.findings import Finding

# Somebody accepted what these rules found, so drift is measured from there on.
_DRIFT = frozenset(("total-drift", "state-drift", "slow-drift", "uniform-scale"))


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


def _has(manifest: Manifest, name: str, info: TableInfo) -> bool:
    kept = manifest.tables.get(name)
    return kept is not None and (kept.rows, kept.checksum) == (info.rows, info.checksum)


def _until(catalog: Catalog, current: Manifest) -> Iterator[Manifest]:
    """`current` and the releases before it that can be compared with it, newest first."""
    for manifest in catalog.all():
        if manifest.published_at <= current.published_at and manifest.illustrative == current.illustrative:
            yield manifest
