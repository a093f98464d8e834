"""Builds the files of a release from staged tables, and tells what they hold: checksums, digest, manifest."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

import duckdb
import msgspec

from warehouse import sql
from warehouse.areas.all import AREAS
from warehouse.drops.recognition import Extract
from warehouse.files.durable import checksum
from warehouse.releases.catalog import BUILDER_VERSION, FINDINGS, FileInfo, Manifest, Origin, TableInfo
from warehouse.schema.findings import SEVERITIES, Acceptance, Report
from warehouse.schema.tables import Table

# Written by whoever makes up figures, into the Parquet footer of every file, so that the mark travels with them.
ILLUSTRATIVE_MARK = b"forecast.illustrative"
ATTRIBUTION_MARK = b"forecast.attribution"


class Contents(msgspec.Struct, frozen=True):
    """What a release is to hold; the same contents have the same digest, whatever order their rows came in."""

    tables: dict[str, TableInfo]
    attribution: tuple[str, ...]
    illustrative: bool

    @property
    def digest(self) -> str:
        tables = [(name, info.rows, info.checksum) for name, info in sorted(self.tables.items())]
        encoded = msgspec.json.encode((BUILDER_VERSION, self.illustrative, tables))
        return blake2b(encoded, digest_size=6).hexdigest()


def write_tables(
    connection: duckdb.DuckDBPyConnection,
    folder: Path,
    tables: Sequence[Table],
    extracts: Sequence[Extract],
    locations: str,
    progress: Callable[[str], None],
) -> dict[str, TableInfo]:
    """Writes staged tables into `folder`; `locations` is the SQL that those in effect are read from."""
    infos = {}
    for table in tables:
        progress(f"writing {table.name}")
        path = table_file(folder, table.name)
        columns = ", ".join(table.column_names)
        into = sql.quoted(str(path))
        connection.execute(sql.statement(f"write_{table.name}", columns=columns, path=into, locations=locations))
        rows, content = content_of(connection, table, path)
        files = tuple(extract.file.label for extract in extracts if extract.table is table)
        infos[table.name] = TableInfo(rows=rows, checksum=content, files=files)
    return infos


def table_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.parquet"


def content_of(connection: duckdb.DuckDBPyConnection, table: Table, path: Path) -> tuple[int, str]:
    """Rows and content checksum of a table of a release."""
    # with its length before each value, no value can pass for the end of one and the beginning of the next
    values = (f"coalesce(length({name}::VARCHAR) || ':' || {name}::VARCHAR, '-')" for name in table.column_names)
    text = sql.statement("checksum_table", row=" || ".join(values), file=sql.rows_of(path))
    ((rows, content),) = connection.execute(text).fetchall()
    return int(rows), str(content)


def build(
    connection: duckdb.DuckDBPyConnection,
    tables: Path,
    out: Path,
    contents: Contents,
    report: Report,
    acceptance: Acceptance | None = None,
    origin: Origin | None = None,
) -> Manifest:
    """Writes everything that a release needs beside its tables, except the manifest, into `out`."""
    areas = [area for area in AREAS if set(area.tables) <= set(contents.tables)]
    key_sets = {area.name: area.build(connection, tables, out) for area in areas}
    for area in areas:
        (out / area.key_set).write_bytes(key_sets[area.name].encoded())
    places = key_sets[AREAS[0].name]  # the area that every release has, and that knows every place
    _write_findings(out, report)
    now = datetime.now(UTC).replace(microsecond=0)
    return Manifest(
        id=f"{now:%Y%m%dT%H%M%SZ}-{contents.digest}",
        published_at=now,
        builder_version=BUILDER_VERSION,
        illustrative=contents.illustrative,
        attribution=contents.attribution,
        areas=tuple(key_sets),
        zip_codes=places.zip_count,
        cities=places.city_count,
        tables=contents.tables,
        files={name: _file_info(out / name) for area in areas for name in area.files},
        findings=_counts(report),
        acceptance=acceptance,
        origin=origin,
    )


def report_again(out: Path, manifest: Manifest, report: Report) -> Manifest:
    """The manifest of a release in `out` whose report has become `report`; writes that as well."""
    _write_findings(out, report)
    return msgspec.structs.replace(manifest, findings=_counts(report))


def _write_findings(out: Path, report: Report) -> None:
    (out / FINDINGS).write_bytes(msgspec.json.format(msgspec.json.encode(report)))


def _counts(report: Report) -> dict[str, int]:
    return {severity: report.count(severity) for severity in SEVERITIES}


def marks(connection: duckdb.DuckDBPyConnection, extracts: Sequence[Extract]) -> Mapping[bytes, tuple[str, ...]]:
    """What the files say about themselves in their footers, by mark, each value once."""
    found: dict[bytes, dict[str, None]] = {ILLUSTRATIVE_MARK: {}, ATTRIBUTION_MARK: {}}
    for extract in extracts:
        try:
            rows = connection.execute(sql.statement("footer_marks"), [sql.pattern(extract.file.path)]).fetchall()
        except duckdb.Error:
            continue  # it went away, or broke: whoever reads its rows says so
        for key, value in rows:
            if key in found and value:
                found[key][value.decode(errors="replace")] = None
    return {mark: tuple(values) for mark, values in found.items()}


def _file_info(path: Path) -> FileInfo:
    return FileInfo(path.stat().st_size, checksum(path))
