"""A drop becomes the current release: collect, recognise, stage, validate, build, switch. Or it is refused, whole."""

import shutil
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Literal

import duckdb
import msgspec
import pyarrow.parquet as pq

from config import resources
from warehouse import sql
from warehouse.areas import forecast
from warehouse.drop import Drop, collect
from warehouse.durable import checksum
from warehouse.errors import CatalogError, NoReleaseError
from warehouse.extracts import Extract, recognise
from warehouse.findings import Finding, Report, report
from warehouse.releases import BUILDER_VERSION, Catalog, FileInfo, Manifest, TableInfo
from warehouse.staging import stage, staged_name
from warehouse.tables import LOCATIONS, TABLES, Table
from warehouse.validation import validate

# Written by whoever makes up figures, into the Parquet footer of every file, so that the mark travels with them.
ILLUSTRATIVE_MARK = b"forecast.illustrative"
ATTRIBUTION_MARK = b"forecast.attribution"

_MEMORY = 512 << 20

Progress = Callable[[str], None]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """`manifest` is that of the release that is current now, None if the drop was refused and nothing is."""

    result: Literal["published", "already_current", "refused"]
    report: Report
    manifest: Manifest | None


def publish(
    catalog: Catalog, paths: Sequence[str], attribution: tuple[str, ...], progress: Progress = lambda _: None
) -> Outcome:
    """Publishes the drop at `paths`, or refuses it and leaves everything as it was.

    Raises:
        DropError: if the paths bring no Parquet file.
        BusyError: if another publisher is at work.
        CatalogError: if the data folder cannot be written.
    """
    drop = collect(paths)
    with catalog.publishing() as staged:
        try:
            return _Publication(catalog, staged, attribution, progress).run(drop)
        except OSError as error:
            raise CatalogError(f"cannot write the data folder {catalog.data}: {error.strerror or error}") from None


class _Publication:
    """One drop on its way, under the publish lock."""

    def __init__(self, catalog: Catalog, staged: Path, attribution: tuple[str, ...], progress: Progress) -> None:
        self._catalog = catalog
        self._staged = staged
        self._tables = staged / "tables"
        self._attribution = attribution
        self._progress = progress

    def run(self, drop: Drop) -> Outcome:
        self._tables.mkdir()
        with duckdb.connect() as connection:
            self._limit(connection)
            return self._run(connection, drop)

    def _run(self, connection: duckdb.DuckDBPyConnection, drop: Drop) -> Outcome:
        recognised = recognise(connection, drop)
        illustrative = any(_mark(extract, ILLUSTRATIVE_MARK) for extract in recognised.extracts)
        before = self._before(illustrative)
        tables, findings = stage(connection, recognised.extracts, self._progress)
        carried = self._carry(before, tables)
        self._progress("validating")
        locations = self._locations(tables, carried)
        findings = [*recognised.findings, *findings, *_missing_tables(tables, carried, recognised.findings)]
        findings += [_carried_note(carried, before)] if carried and before else []
        findings += validate(connection, tables, locations)
        summary = report(findings)
        if summary.refused:
            return Outcome(result="refused", report=summary, manifest=before)
        infos = self._write_tables(connection, tables, recognised.extracts, locations or "")
        infos |= {name: self._carried_info(info, before) for name, info in carried.items()}
        digest = _digest(infos, illustrative)
        if before and before.id.endswith(digest):
            return Outcome(result="already_current", report=summary, manifest=before)
        return self._build(connection, infos, digest, summary, recognised.extracts, illustrative)

    def _before(self, illustrative: bool) -> Manifest | None:
        """The current release, unless its figures are made up and these are not (or the other way round)."""
        try:
            before = self._catalog.current()
        except NoReleaseError:
            return None
        return before if before.illustrative == illustrative else None

    def _carry(self, before: Manifest | None, tables: list[Table]) -> dict[str, TableInfo]:
        """Copies the tables that the drop does not bring from the release before."""
        if before is None:
            return {}
        brought = {table.name for table in tables}
        carried = {name: info for name, info in before.tables.items() if name not in brought}
        for name in carried:
            shutil.copy(self._catalog.folder(before.id) / "tables" / f"{name}.parquet", self._tables)
        return carried

    @staticmethod
    def _carried_info(info: TableInfo, before: Manifest | None) -> TableInfo:
        origin = info.carried_from or (before.id if before else None)
        return msgspec.structs.replace(info, carried_from=origin)

    def _locations(self, tables: list[Table], carried: dict[str, TableInfo]) -> str | None:
        """SQL that the locations in effect can be read from."""
        if LOCATIONS in tables:
            return staged_name(LOCATIONS)
        return f"read_parquet('{self._tables}/locations.parquet')" if "locations" in carried else None

    def _write_tables(
        self, connection: duckdb.DuckDBPyConnection, tables: list[Table], extracts: Sequence[Extract], locations: str
    ) -> dict[str, TableInfo]:
        infos = {}
        for table in tables:
            self._progress(f"writing {table.name}")
            path = self._tables / f"{table.name}.parquet"
            columns = ", ".join(table.column_names)
            write = sql.statement(f"write_{table.name}", columns=columns, path=str(path), locations=locations)
            connection.execute(write)
            row = " || '|' || ".join(f"coalesce({name}::VARCHAR, '')" for name in table.column_names)
            counted = connection.execute(sql.statement("checksum_table", row=row, path=str(path))).fetchone()
            rows, content = counted or (0, "0")
            files = tuple(extract.file.label for extract in extracts if extract.table is table)
            infos[table.name] = TableInfo(rows=rows, checksum=str(content), files=files)
        return infos

    def _build(
        self,
        connection: duckdb.DuckDBPyConnection,
        infos: dict[str, TableInfo],
        digest: str,
        summary: Report,
        extracts: Sequence[Extract],
        illustrative: bool,
    ) -> Outcome:
        self._progress("encoding entries")
        keys = forecast.build(connection, self._tables, self._staged)
        (self._staged / "findings.json").write_bytes(msgspec.json.format(msgspec.json.encode(summary)))
        now = datetime.now(UTC).replace(microsecond=0)
        manifest = Manifest(
            id=f"{now:%Y%m%dT%H%M%SZ}-{digest}",
            published_at=now,
            builder_version=BUILDER_VERSION,
            illustrative=illustrative,
            attribution=_attribution(extracts) or self._attribution,
            areas=("forecast",),
            zip_codes=keys.zip_count,
            cities=keys.city_count,
            tables=infos,
            files={name: _file_info(self._staged / name) for name in (forecast.ENTRIES, forecast.KEY_SET)},
            findings={severity: summary.count(severity) for severity in ("error", "warning", "info")},
        )
        self._progress("switching")
        self._catalog.adopt(self._staged, manifest)
        self._catalog.switch(manifest.id)
        return Outcome(result="published", report=summary, manifest=manifest)

    def _limit(self, connection: duckdb.DuckDBPyConnection) -> None:
        text = sql.statement(
            "limit_publisher",
            memory=str(_MEMORY),
            threads=str(resources.processors()),
            folder=str(self._staged.parent).replace("'", "''"),
        )
        connection.execute(text)


def roll_back(catalog: Catalog, release: str | None = None) -> Manifest:
    """Makes `release`, or the one that was current before this one, current again.

    Raises:
        CatalogError: if there is no such release, or it is damaged.
        BusyError: if a publisher is at work.
    """
    with catalog.publishing():
        pointer = catalog.pointer()
        if pointer is None:
            raise NoReleaseError("nothing was published yet, so there is nothing to return to")
        target = release or pointer.previous
        if target is None:
            raise CatalogError("there was no release before the current one")
        manifest = catalog.manifest(target)
        catalog.verify(manifest)
        if target != pointer.release:
            catalog.switch(target)
        return manifest


def _missing_tables(tables: list[Table], carried: dict[str, TableInfo], known: Sequence[Finding]) -> list[Finding]:
    """Tables that a release needs and neither the drop nor the release before has."""
    have = {table.name for table in tables} | set(carried) | {finding.table for finding in known}
    return [
        Finding(
            severity="error",
            rule="missing-table",
            message=f"the drop has no {table.name}, and there is no release to keep it from",
            table=table.name,
            remedy=f"add the file with {', '.join(table.column_names[:3])}, ...",
        )
        for table in TABLES
        if table.needed and table.name not in have
    ]


def _carried_note(carried: dict[str, TableInfo], before: Manifest) -> Finding:
    return Finding(
        severity="info",
        rule="carried-table",
        message=f"not in the drop, kept from {before.id}: {', '.join(sorted(carried))}",
        count=len(carried),
    )


def _mark(extract: Extract, mark: bytes) -> str | None:
    metadata = pq.read_schema(extract.file.path).metadata or {}
    value = metadata.get(mark)
    return value.decode(errors="replace") if value else None


def _attribution(extracts: Sequence[Extract]) -> tuple[str, ...]:
    named = [line for extract in extracts for line in (_mark(extract, ATTRIBUTION_MARK) or "").split("|") if line]
    return tuple(dict.fromkeys(named))


def _digest(infos: dict[str, TableInfo], illustrative: bool) -> str:
    content = [(name, info.rows, info.checksum) for name, info in sorted(infos.items())]
    encoded = msgspec.json.encode((BUILDER_VERSION, illustrative, content))
    return blake2b(encoded, digest_size=6).hexdigest()


def _file_info(path: Path) -> FileInfo:
    return FileInfo(path.stat().st_size, checksum(path))
