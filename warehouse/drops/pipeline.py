"""Reads a drop: collects, recognises, stages and validates it, and writes its tables in normalised form.

No other module reads raw files. It runs in a separate process (reader.py) with limits on memory and time, so that a
hostile or broken file does no harm elsewhere.
"""

from collections.abc import Collection, Iterable
from pathlib import Path

import duckdb
import msgspec

from config.text import MAX_LINES, printable_struct
from warehouse import sql
from warehouse.drops import parquet_integrity
from warehouse.drops.collection import Drop, DropFile, collect
from warehouse.drops.disk_budget import DiskBudget, connect_within, disk_budget_for
from warehouse.drops.exact_copies import exact_copies
from warehouse.drops.file_kinds import UnreadFile
from warehouse.drops.messages import BaseRelease, ReadRequest, ReadResult
from warehouse.drops.months import month_findings, read_dates, with_dates
from warehouse.drops.parts import find_several_drops, find_unlike_parts
from warehouse.drops.recognition import LEAST_SCORE, nearest_table, recognise
from warehouse.drops.staging import stage, staged_name
from warehouse.drops.validation import validate
from warehouse.drops.writing import ATTRIBUTION_MARK, ILLUSTRATIVE_MARK, footer_marks, write_tables
from warehouse.releases.files import table_file
from warehouse.rules.all_rules import RULES, RuleLimits, make_finding
from warehouse.rules.failures import FailureFile, write_failures
from warehouse.schema.errors import DropError
from warehouse.schema.findings import Finding
from warehouse.schema.progress import ProgressCallback
from warehouse.schema.tables import LOCATIONS, TABLES, Table


def read_drop(request: ReadRequest, progress: ProgressCallback = lambda _: None) -> ReadResult:
    """Reads a drop and returns the result. Problems with the drop become findings, not exceptions."""
    result: ReadResult = printable_struct(_read_or_fail(request, progress))
    return result


def _read_or_fail(request: ReadRequest, progress: ProgressCallback) -> ReadResult:
    try:
        drop = collect(request.paths)
    except DropError as error:
        return ReadResult(no_drop=str(error))
    out = Path(request.out)
    try:
        budget = disk_budget_for((file.path for file in drop.files), out)
    except OSError as error:
        return ReadResult(failure=f"{out} cannot be read: {error.strerror}")
    with connect_within(budget, out.parent) as connection:
        try:
            return _read(connection, request, drop, budget, progress)
        except OSError as error:
            return ReadResult(failure=f"the drop cannot be copied: {error.strerror or error}")
        except duckdb.Error as error:
            excess = budget.excess(error, out.parent)
            if excess is not None:
                return _failed(excess)
            if isinstance(error, duckdb.OutOfMemoryException):
                return ReadResult(failure=f"the drop cannot be read: {budget.lack()}")
            if isinstance(error, duckdb.IOException):  # problems of the drop's own files are findings already
                return ReadResult(failure=f"the tables cannot be written: {sql.reason(error)}")
            return _failed(f"failed ({sql.reason(error)})")


def _failed(what: str) -> ReadResult:
    return ReadResult(findings=(make_finding("reader-failed", f"reading the drop {what}"),))


def _read(
    connection: duckdb.DuckDBPyConnection,
    request: ReadRequest,
    drop: Drop,
    budget: DiskBudget,
    progress: ProgressCallback,
) -> ReadResult:
    seen = {file.label: _fingerprint(file) for file in drop.files}
    claims = {file.label: parquet_integrity.claims_of(file.path) for file in drop.files}
    oversized = {
        label: make_finding(
            claimed.rule,
            f"{label} {claimed.excess}",
            file=label,
            remedy=claimed.remedy or RULES[claimed.rule].remedy,
        )
        for label, claimed in claims.items()
        if claimed.excess is not None
    }
    left = tuple(file for file in drop.files if file.label not in oversized)
    drop = msgspec.structs.replace(drop, files=left, findings=(*drop.findings, *oversized.values()))
    excess = _too_many_rows(claims, RuleLimits(request.limits)["too-many-rows"])
    if excess is not None:
        return ReadResult(findings=(*drop.findings, excess))
    recognised = recognise(connection, drop)
    marks = footer_marks(connection, recognised.extracts)
    illustrative = bool(marks[ILLUSTRATIVE_MARK])
    # made-up figures are never mixed with real ones or compared with them
    before = request.before if request.before and request.before.illustrative == illustrative else None
    out = Path(request.out)
    with exact_copies(recognised.extracts, out.parent) as extracts:
        tables, findings = stage(connection, extracts, progress, budget)
        dates = read_dates(connection, extracts)
    several = find_several_drops(connection, recognised.extracts)
    if several is not None:
        return ReadResult(findings=(*recognised.findings, several))
    findings += find_unlike_parts(recognised.extracts, claims)
    findings = [*recognised.findings, *findings, *_changed(drop.files, seen), *month_findings(dates)]
    kept = _kept(before, tables, request.withdrawn)
    findings = _with_table_findings(drop, findings, {table.name for table in tables}, kept, before, request)
    findings += _missing_required(request.required, {table.name for table in tables}, findings)
    progress("validating")
    locations = _locations(tables, kept, before)
    validated = validate(connection, tables, locations, findings, RuleLimits(request.limits))
    findings += validated.findings
    failures: tuple[FailureFile, ...] = ()
    if request.failures is not None:
        progress("writing failing rows")
        try:
            folder = Path(request.failures)
            failures = tuple(write_failures(connection, folder, *fault) for fault in validated.faults.items())
        except duckdb.IOException as error:
            return ReadResult(failure=f"the failing rows cannot be written: {sql.reason(error)}")
    repeated = {finding.table for finding in validated.findings if finding.rule == "duplicate-key"}
    for table in (one for one in tables if one.name in repeated):
        parts = {"staged": staged_name(table), "key": ", ".join(table.key)}
        connection.execute(sql.statement("keep_first_rows", **parts))
    writable = [table for table in tables if locations or not table.of_locations]
    infos = write_tables(connection, out, writable, recognised.extracts, locations or "", progress)
    lines = (line for mark in marks[ATTRIBUTION_MARK] for line in mark.split("|") if line)
    return ReadResult(
        findings=tuple(findings),
        tables=with_dates(infos, dates),
        kept=kept,
        illustrative=illustrative,
        attribution=tuple(dict.fromkeys(lines))[:MAX_LINES],
        failures=failures,
    )


def _too_many_rows(claims: dict[str, parquet_integrity.Claims], limit: float) -> Finding | None:
    """Checks the total of claimed rows before a file is read: a small file can hold a billion equal rows."""
    total = sum(claimed.rows for claimed in claims.values())
    if total <= limit:
        return None
    largest = sorted(((label, claimed.rows) for label, claimed in claims.items()), key=lambda claim: -claim[1])[:5]
    return make_finding(
        "too-many-rows",
        f"the drop claims {total:,} rows; the limit is {limit:,.0f}",
        file=largest[0][0],
        count=total,
        samples=tuple(f"{label}: {rows:,} rows" for label, rows in largest),
    )


def _fingerprint(file: DropFile) -> tuple[int, int, int]:
    try:
        status = file.path.stat()
    except OSError:
        return (0, 0, 0)
    return status.st_size, status.st_mtime_ns, status.st_ino


def _changed(files: Iterable[DropFile], seen: dict[str, tuple[int, int, int]]) -> list[Finding]:
    changed = [file for file in files if _fingerprint(file) != seen[file.label]]
    return [
        make_finding("changed-file", f"{file.label} changed while it was read", file=file.label) for file in changed
    ]


def _kept(before: BaseRelease | None, tables: list[Table], withdrawn: tuple[str, ...]) -> tuple[str, ...]:
    brought = {table.name for table in tables}
    return tuple(name for name in (before.tables if before else ()) if name not in brought and name not in withdrawn)


def _locations(tables: list[Table], kept: tuple[str, ...], before: BaseRelease | None) -> str | None:
    """Returns the FROM expression for the locations in effect: the drop's own, or those of the current release."""
    if LOCATIONS in tables:
        return staged_name(LOCATIONS)
    if before is not None and LOCATIONS.name in kept:
        return sql.rows_of(table_file(Path(before.folder), LOCATIONS.name))
    return None


def _with_table_findings(
    drop: Drop,
    findings: list[Finding],
    brought: set[str],
    kept: tuple[str, ...],
    before: BaseRelease | None,
    request: ReadRequest,
) -> list[Finding]:
    """Returns the findings, and those on tables that are missing, kept or withdrawn.

    If the drop lacks a table, an unread file that may hold one is an error. If a file cannot be read, a missing table
    follows from that.
    """
    broken = {finding.table for finding in findings if finding.severity == "error"}
    have = brought | set(kept)
    missing = [table for table in TABLES if table.needed and table.name not in have | broken]
    staying = sorted(set(kept) - broken)
    findings = unread_as_errors(drop, findings, [*(table.name for table in missing), *staying])
    lost = (finding.rule for finding in findings if finding.severity == "error" and finding.table is None)
    cause = next((rule for rule in lost if rule in _LOSES_FILES), None)
    notes = [
        make_finding(
            "missing-table",
            f"the drop has no {table.name}, and there is no current release to copy it from",
            table=table.name,
            remedy=f"add the file with {', '.join(table.column_names[:3])}, ...",
            follows=cause,
        )
        for table in (() if request.partial else missing)
    ]
    if staying and before is not None:
        message = f"not in the drop, kept from {before.release}: {', '.join(staying)}"
        notes.append(make_finding("carried-table", message, count=len(staying), follows=cause))
    gone = [name for name in request.withdrawn if before is not None and name in before.tables and name not in have]
    notes += [
        make_finding("dropped-table", f"{name} is withdrawn: the release will not have it", table=name) for name in gone
    ]
    return findings + notes


# Rules on files whose table is unknown, because they cannot be read.
_LOSES_FILES = {
    "hidden-rows",
    "not-parquet",
    "truncated-file",
    "unfinished-file",
    "unreadable-file",
    "oversized-file",
    "link-out-of-drop",
    "table-format",
    "unread-table",
}


def _missing_required(required: Iterable[str], brought: set[str], findings: Iterable[Finding]) -> list[Finding]:
    """Returns findings on required tables that the drop lacks, unless another error already concerns them."""
    covered = {finding.table for finding in findings if finding.severity == "error"}
    lacking = [name for name in dict.fromkeys(required) if name not in brought and name not in covered]
    if not lacking:
        return []
    message = f"the drop lacks {', '.join(lacking)}"
    return [make_finding("required-table", message, count=len(lacking), samples=tuple(lacking))]


def unread_as_errors(drop: Drop, findings: list[Finding], lacking: Collection[str]) -> list[Finding]:
    """Returns the findings. A foreign file that may hold a table that the drop lacks is an error.

    A copy in another format, beside the Parquet file of the same name, stays a warning.
    """
    read = {_stem(file.label) for file in drop.files}
    return [
        _as_error(finding, drop.unread[finding.file], lacking)
        if finding.rule == "foreign-file" and finding.file in drop.unread and _stem(finding.file) not in read
        else finding
        for finding in findings
    ]


def _as_error(finding: Finding, file: UnreadFile, lacking: Collection[str]) -> Finding:
    """Returns the finding on a foreign file as an error if the drop may lack the table in it."""
    label = finding.file or ""
    likely = _table_by_columns(file) or (None if file.companion else _table_by_name(label))
    # a needed table is more likely than one that many drops never contain
    missing = [table for table in sorted(TABLES, key=lambda one: not one.needed) if table.name in lacking]
    may_be_missing = not file.companion and any(table.needed for table in missing)
    if likely in missing:
        what = f"which is not read; the drop lacks {likely.name}, which it probably holds"
    elif not may_be_missing:
        return finding
    elif likely is None:
        what = f"which is not read; the drop lacks {', '.join(table.name for table in missing)}"
    else:
        what = f"which is not read; it probably holds {likely.name}"
    message = f"{label} is {file.kind.name}, {what}"
    return make_finding("unread-table", message, file=label, remedy=f"{file.kind.remedy}, or leave the file out")


def _table_by_columns(file: UnreadFile) -> Table | None:
    table, score = nearest_table(file.columns)
    return table if score >= LEAST_SCORE else None


def _table_by_name(label: str) -> Table | None:
    """Returns the table that a file is named after, in the singular or plural: `project` for `development_projects`."""
    words = ((table, table.name.rpartition("_")[2].removesuffix("es").removesuffix("s")) for table in TABLES)
    return next((table for table, word in words if word in _stem(label)), None)


def _stem(label: str) -> str:
    return Path(label).name.partition(".")[0].lower()
