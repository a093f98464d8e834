"""Which table each file of a drop is, by its columns, and in which shape."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Literal

import duckdb
import msgspec

from warehouse import sql
from warehouse.drop import Drop, DropFile
from warehouse.findings import Finding
from warehouse.tables import POPULATION, TABLES, WIDE_POPULATION, Table

_HEADERLESS = re.compile(r"_?col_?[0-9]+")


class Extract(msgspec.Struct, frozen=True):
    """One file recognised as (a part of) a table.

    `columns` maps lower-case column names to the file's own spelling and DuckDB type; `years` is empty in the long
    shape, else the year columns of a wide population table by year.
    """

    file: DropFile
    table: Table
    columns: dict[str, tuple[str, str]]
    years: dict[int, str] = {}

    @property
    def shape(self) -> Literal["long", "wide"]:
        return "wide" if self.years else "long"


class Recognised(msgspec.Struct, frozen=True):
    extracts: tuple[Extract, ...]
    findings: tuple[Finding, ...]


def recognise(connection: duckdb.DuckDBPyConnection, drop: Drop) -> Recognised:
    """Every file of `drop` with the table it is; a file that is none is an error that names the nearest."""
    extracts: list[Extract] = []
    findings: list[Finding] = list(drop.findings)
    for file in drop.files:
        try:
            columns = _columns(connection, file)
        except duckdb.Error as error:
            reason = str(error).strip().splitlines()[0]
            findings.append(_unreadable(file.label, reason))
            continue
        found, problem = _match(file, columns)
        if problem is not None:
            findings.append(problem)
        if found is not None:
            extracts.append(found)
            findings.extend(_notes(found))
    return Recognised(tuple(extracts), tuple(findings))


def duckdb_path(file: DropFile) -> str:
    """The file's path with DuckDB's glob characters taken literally."""
    return re.sub(r"([*?\[])", r"[\1]", str(file.path))


def _columns(connection: duckdb.DuckDBPyConnection, file: DropFile) -> dict[str, tuple[str, str]]:
    rows = connection.execute(sql.statement("describe_extract"), [duckdb_path(file)]).fetchall()
    columns = {str(row[0]).strip().lower(): (str(row[0]), str(row[1])) for row in rows}
    # a folder named key=value stands for a text column that the file itself does not have
    for key in file.partitions:
        columns.setdefault(key, ("", "PARTITION"))
    return columns


def _match(file: DropFile, columns: dict[str, tuple[str, str]]) -> tuple[Extract | None, Finding | None]:
    years = _year_columns(columns)
    if columns and all(_HEADERLESS.fullmatch(name) for name in columns):
        return None, Finding(
            severity="error",
            rule="unrecognised-file",
            message=f"{file.label} has no column names ({', '.join(list(columns)[:3])}, ...)",
            file=file.label,
            remedy="unload with headers (Snowflake: HEADER = TRUE)",
        )
    ranked = sorted(((_score(table, columns, years), len(table.columns), table) for table in TABLES), key=_rank)
    score, _, table = ranked[-1]
    wide = years if table is POPULATION and "tot_population" not in columns else {}
    missing = _missing(table, columns, years)
    if not missing:
        return Extract(file, table, columns, wide), None
    rule = "missing-column" if score >= 0.5 else "unrecognised-file"
    message = (
        f"{file.label} looks like {table.name} but lacks {_listed(missing)}"
        if rule == "missing-column"
        else f"{file.label} matches no table; the nearest is {table.name}, of which it lacks {_listed(missing)}"
    )
    return None, Finding(
        severity="error",
        rule=rule,
        message=message,
        table=table.name,
        file=file.label,
        column=missing[0] if len(missing) == 1 else None,
        count=len(missing),
        samples=tuple(f"has {name}" for name in list(columns)[:5]),
        remedy=_similar(missing, columns),
    )


def _rank(entry: tuple[float, int, Table]) -> tuple[float, int]:
    return entry[0], entry[1]


def _score(table: Table, columns: Iterable[str], years: dict[int, str]) -> float:
    """Share of the table's columns that are there, 0 to 1, distinctive ones counted twice."""
    have = set(columns)
    if table is POPULATION and years:
        have |= {"year", "tot_population"}
    matched = sum(name in have for name in (*table.column_names, *table.distinctive))
    return matched / (len(table.columns) + len(table.distinctive))


def _missing(table: Table, columns: Iterable[str], years: dict[int, str]) -> list[str]:
    have = set(columns)
    if table is POPULATION and years:
        have |= {"year", "tot_population"}
    return [name for name in table.column_names if name not in have]


def _year_columns(columns: Iterable[str]) -> dict[int, str]:
    """Year to column of a wide population table; a counted year takes precedence over a forecast of it."""
    years: dict[int, str] = {}
    for name in sorted(columns, reverse=True):  # tot_fx... before tot_census..., which overwrites it
        match = WIDE_POPULATION.fullmatch(name)
        if match:
            years[int(match[2])] = name
    return dict(sorted(years.items()))


def _notes(extract: Extract) -> list[Finding]:
    used = {*extract.table.column_names, *extract.years.values()}
    all_years = [name for name in extract.columns if WIDE_POPULATION.fullmatch(name)]
    shadowed = [name for name in all_years if extract.years and name not in used]
    ignored = [name for name in extract.columns if name not in used and name not in shadowed]
    notes = []
    if shadowed:
        notes.append(
            Finding(
                severity="warning",
                rule="year-in-both",
                message=f"{len(shadowed)} year(s) are there as CENSUS and as FX; the CENSUS column was taken",
                table=extract.table.name,
                file=extract.file.label,
                count=len(shadowed),
                samples=tuple(shadowed[:5]),
            )
        )
    if ignored:
        notes.append(
            Finding(
                severity="info",
                rule="ignored-column",
                message=f"column(s) that nothing needs were ignored: {', '.join(ignored)}",
                table=extract.table.name,
                file=extract.file.label,
                count=len(ignored),
            )
        )
    return notes


def _listed(names: list[str]) -> str:
    return f"column {names[0]}" if len(names) == 1 else f"columns {', '.join(names)}"


def _similar(missing: list[str], columns: Iterable[str]) -> str:
    have = list(columns)
    hints = [f"{name}: is it {close[0]}?" for name in missing if (close := get_close_matches(name, have, n=1))]
    return "; ".join(["export the missing columns under these names", *hints])


def _unreadable(label: str, reason: str) -> Finding:
    return Finding(
        severity="error",
        rule="unreadable-file",
        message=f"{label} cannot be read as Parquet: {reason}",
        file=label,
        remedy="export it again",
    )
