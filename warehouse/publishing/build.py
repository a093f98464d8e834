"""Builds the files of a release from its normalised tables, and the manifest that describes them."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

import duckdb
import msgspec

from warehouse.areas.data_area import DataArea, acceptable_aliases
from warehouse.areas.registry import DATA_AREAS
from warehouse.files.atomic import checksum
from warehouse.places.keyset import KeySet
from warehouse.places.match import Match
from warehouse.places.names import strip_state
from warehouse.publishing.bulk import ReleaseBefore, write_bulk
from warehouse.releases.catalog import BUILDER_VERSION, FINDINGS, RELEASE_FORMAT, FileInfo, Manifest, Origin, TableInfo
from warehouse.releases.files import FORMATS, AreaContents, changes_file, flat_file
from warehouse.rules.all_rules import make_finding
from warehouse.schema.findings import SEVERITIES, Acceptance, Finding, ValidationReport, make_report
from warehouse.schema.tables import ALIASES


class ReleaseContents(msgspec.Struct, frozen=True):
    """The contents of a release. Created for one publish.

    The same contents have the same digest, regardless of the order of rows.
    """

    tables: dict[str, TableInfo]
    attribution: tuple[str, ...]
    illustrative: bool

    @property
    def digest(self) -> str:
        """12 hex digits that identify the contents and the version of the builder. Part of the release id."""
        tables = [(name, info.rows, info.checksum) for name, info in sorted(self.tables.items())]
        encoded = msgspec.json.encode((BUILDER_VERSION, self.illustrative, tables))
        return blake2b(encoded, digest_size=6).hexdigest()


def build_release(
    connection: duckdb.DuckDBPyConnection,
    tables: Path,
    out: Path,
    contents: ReleaseContents,
    report: ValidationReport,
    acceptance: Acceptance | None = None,
    origin: Origin | None = None,
    before: ReleaseBefore | None = None,
) -> tuple[Manifest, ValidationReport]:
    """Writes everything that a release needs besides its tables to `out`, except the manifest, which it returns.

    Returns also the report that it wrote: `report`, and the findings on the built release.
    """
    areas = [area for area in DATA_AREAS if set(area.tables) <= set(contents.tables)]
    key_sets: dict[str, KeySet] = {}
    held: dict[str, AreaContents] = {}
    for area in areas:
        keys = key_sets[area.name] = area.build(connection, tables, out)
        (out / area.key_set).write_bytes(keys.encoded())
        held[area.name] = write_bulk(connection, area, tables, out, before)
    places = key_sets[DATA_AREAS[0].name]  # every release has this area, and it has every place
    barren = barren_aliases(places, acceptable_aliases(connection, tables))
    if barren:
        report = make_report([*report.findings, *barren], report.comparison)
    _write_findings(out, report)
    now = datetime.now(UTC).replace(microsecond=0)
    manifest = Manifest(
        id=f"{now:%Y%m%dT%H%M%SZ}-{contents.digest}",
        published_at=now,
        builder_version=BUILDER_VERSION,
        illustrative=contents.illustrative,
        attribution=contents.attribution,
        areas=tuple(key_sets),
        zip_codes=places.zip_count,
        cities=places.city_count,
        tables=contents.tables,
        files={name: _file_info(out / name) for area in areas for name in _files_of(area, held[area.name])},
        findings=_counts(report),
        acceptance=acceptance,
        origin=origin,
        previous=before.id if before is not None else None,
        contents=held,
        format=RELEASE_FORMAT,
    )
    return manifest, report


def rewrite_report(out: Path, manifest: Manifest, report: ValidationReport) -> Manifest:
    """Replaces the report of the release in `out`. Returns its new manifest."""
    _write_findings(out, report)
    return msgspec.structs.replace(manifest, findings=_counts(report))


def _files_of(area: DataArea, held: AreaContents) -> tuple[str, ...]:
    flat = (flat_file(area.name, form) for form in FORMATS)
    changes = () if held.changed is None else (changes_file(area.name),)
    return (*area.files, *flat, *changes)


def _write_findings(out: Path, report: ValidationReport) -> None:
    (out / FINDINGS).write_bytes(msgspec.json.format(msgspec.json.encode(report)))


def _counts(report: ValidationReport) -> dict[str, int]:
    return {severity: report.count(severity) for severity in SEVERITIES}


def _file_info(path: Path) -> FileInfo:
    return FileInfo(path.stat().st_size, checksum(path))


_MOST_NAMED = 100  # high, because they are listed nowhere else: no file of --failures has them
_MOST_KEYS = 5


def barren_aliases(keys: KeySet, aliases: Iterable[tuple[str, str, str]]) -> list[Finding]:
    """Returns a finding if aliases match only ZIP codes without figures, as `keys` resolves them.

    `aliases` are ZIP code, name and state of the accepted ones.
    """
    found: dict[str, tuple[str, Match]] = {}
    for zip_code, name, state in aliases:
        if keys.has_figures((zip_code,)):
            continue
        match = keys.resolve(None, name, state)
        if isinstance(match, Match) and not keys.has_figures(match.keys) and any(_have_figures(keys, match.cities)):
            found.setdefault(match.query, (f"{name}, {state}", match))
    if not found:
        return []
    return [
        make_finding(
            "barren-alias",
            f"{len(found):,} alias(es) match only ZIP codes without figures, although their town has figures",
            table=ALIASES.name,
            column="city_name",
            count=len(found),
            samples=tuple(
                f"{name} finds {', '.join(match.keys[:_MOST_KEYS])} in {'; '.join(match.cities)}"
                for name, match in list(found.values())[:_MOST_NAMED]
            ),
        )
    ]


def _have_figures(keys: KeySet, cities: Iterable[str]) -> Iterator[bool]:
    """Yields for each city ("Dickinson, AL") whether it has figures."""
    for city in cities:
        _, _, state = city.rpartition(", ")
        match = keys.resolve(None, strip_state(city, state), state)
        yield isinstance(match, Match) and keys.has_figures(match.keys)
