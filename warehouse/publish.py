"""A drop becomes the current release: collect, recognise, stage, validate, build, switch. Or it is refused, whole."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import duckdb
import msgspec

from config import resources
from warehouse import build, sql
from warehouse.drop import Drop, collect
from warehouse.errors import CatalogError, NoReleaseError
from warehouse.extracts import Recognised, recognise
from warehouse.findings import Finding, Report, report
from warehouse.releases import Catalog, Manifest, TableInfo
from warehouse.staging import stage, staged_name
from warehouse.tables import LOCATIONS, TABLES, Table, table
from warehouse.validation import validate

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
        except duckdb.Error as error:  # of the drop's own errors each is a finding
            raise CatalogError(f"the release cannot be built: {str(error).strip().splitlines()[0]}") from None


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
        current = self._current()
        with duckdb.connect() as connection:
            self._limit(connection)
            recognised = recognise(connection, drop)
            marks = build.marks(connection, recognised.extracts)
            illustrative = bool(marks[build.ILLUSTRATIVE_MARK])
            # made-up figures are never mixed with real ones, nor compared with them
            before = current if current and current.illustrative == illustrative else None
            tables, carried, summary = self._examine(connection, recognised, before)
            if summary.refused:
                return Outcome(result="refused", report=summary, manifest=current)
            locations = self._locations(tables, carried) or ""
            brought = build.write_tables(
                connection, self._tables, tables, recognised.extracts, locations, self._progress
            )
            lines = (line for mark in marks[build.ATTRIBUTION_MARK] for line in mark.split("|") if line)
            attribution = tuple(dict.fromkeys(lines)) or self._attribution
            contents = build.Contents(brought | carried, attribution, illustrative)
            if before and before.id.endswith(f"-{contents.digest}"):
                return Outcome(result="already_current", report=summary, manifest=before)
            self._progress("encoding entries")
            manifest = build.build(connection, self._tables, self._staged, contents, summary)
        self._progress("switching")
        self._catalog.adopt(self._staged, manifest)
        self._catalog.switch(manifest.id)
        return Outcome(result="published", report=summary, manifest=manifest)

    def _examine(
        self, connection: duckdb.DuckDBPyConnection, recognised: Recognised, before: Manifest | None
    ) -> tuple[list[Table], dict[str, TableInfo], Report]:
        """Stages and validates; returns the tables that the drop brings, those it keeps, and all findings."""
        tables, findings = stage(connection, recognised.extracts, self._progress)
        findings = [*recognised.findings, *findings]
        broken = {finding.table for finding in findings if finding.severity == "error"}
        carried = self._carry(connection, before, {table.name for table in tables})
        findings += _missing_tables({table.name for table in tables} | set(carried), broken)
        if kept := sorted(set(carried) - broken):
            findings.append(_carried_note(kept, before))
        self._progress("validating")
        findings += validate(connection, tables, self._locations(tables, carried), broken)
        return tables, carried, report(findings)

    def _current(self) -> Manifest | None:
        try:
            return self._catalog.current()
        except NoReleaseError:
            return None

    def _carry(
        self, connection: duckdb.DuckDBPyConnection, before: Manifest | None, brought: set[str]
    ) -> dict[str, TableInfo]:
        """Copies the tables that the drop does not bring from the release before.

        Raises:
            CatalogError: if one of them is not what was published.
        """
        carried = {}
        for name, info in before.tables.items() if before else ():
            if before is None or name in brought:
                continue
            source = build.table_file(self._catalog.folder(before.id) / "tables", name)
            copy = build.table_file(self._tables, name)
            try:
                shutil.copyfile(source, copy)
                intact = build.content_of(connection, table(name), copy) == (info.rows, info.checksum)
            except (FileNotFoundError, duckdb.Error):
                intact = False
            if not intact:
                raise CatalogError(f"{source} is damaged: publish a drop that brings {name}, or roll back")
            carried[name] = msgspec.structs.replace(info, carried_from=info.carried_from or before.id)
        return carried

    def _locations(self, tables: list[Table], carried: dict[str, TableInfo]) -> str | None:
        """SQL that the locations in effect can be read from."""
        if LOCATIONS in tables:
            return staged_name(LOCATIONS)
        path = build.table_file(self._tables, LOCATIONS.name)
        return sql.rows_of(path) if LOCATIONS.name in carried else None

    def _limit(self, connection: duckdb.DuckDBPyConnection) -> None:
        text = sql.statement(
            "limit_publisher",
            memory=str(_MEMORY),
            threads=str(resources.processors()),
            folder=sql.quoted(str(self._staged.parent)),
        )
        connection.execute(text)


def roll_back(catalog: Catalog, release: str | None = None) -> Manifest:
    """Makes `release`, or the one that was current before this one, current again.

    Raises:
        CatalogError: if there is no such release, or it is damaged.
        BusyError: if a publisher is at work.
    """
    with catalog.publishing():
        manifest = catalog.manifest(release or _previous(catalog))
        catalog.verify(manifest)
        catalog.switch(manifest.id)
        return manifest


def _previous(catalog: Catalog) -> str:
    pointer = catalog.pointer()
    if pointer is None:
        raise NoReleaseError("nothing was published yet, so there is nothing to return to")
    if pointer.previous is None:
        raise CatalogError("there was no release before the current one")
    return pointer.previous


def _missing_tables(have: set[str], broken: set[str | None]) -> list[Finding]:
    """Tables that a release needs and neither the drop nor the release before has."""
    return [
        Finding(
            severity="error",
            rule="missing-table",
            message=f"the drop has no {table.name}, and there is no release to keep it from",
            table=table.name,
            remedy=f"add the file with {', '.join(table.column_names[:3])}, ...",
        )
        for table in TABLES
        if table.needed and table.name not in have | broken
    ]


def _carried_note(carried: Sequence[str], before: Manifest | None) -> Finding:
    return Finding(
        severity="info",
        rule="carried-table",
        message=f"not in the drop, kept from {before.id if before else ''}: {', '.join(carried)}",
        count=len(carried),
    )
