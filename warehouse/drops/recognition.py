"""Recognises the table and the shape of each file of a drop, by its columns."""

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Any, Literal

import duckdb
import msgspec

from warehouse import sql
from warehouse.drops.collection import Drop, DropFile
from warehouse.drops.file_columns import KNOWN_COLUMNS, cause_of, encrypted_columns, read_columns, respelled
from warehouse.drops.file_faults import explain
from warehouse.rules.all_rules import make_finding
from warehouse.schema.column_types import PARTITION, ColumnType
from warehouse.schema.findings import Finding
from warehouse.schema.tables import (
    HOUSING,
    HOUSING_FIGURES,
    LOCATIONS,
    MONTH_CODE,
    POPULATION,
    TABLES,
    UPDATED_AT,
    WIDE_POPULATION,
    Table,
)

_HOUSING_FIGURE = re.compile(r"(tot_home_available|est_total_home_demand)_[0-9]{4}")
LEAST_SCORE = 0.5  # the share of a table's columns that identifies a file as this table
_FEW_NAMES = 3  # names in a remedy
_FEWEST_COLUMNS = 2  # known columns in a file that is probably a table; many other files have a zip_code
_HEADERLESS = re.compile(r"_?col_?[0-9]+")


class Extract(msgspec.Struct, frozen=True):
    """One file that was recognised as a table, or as part of one. Lives while the drop is read."""

    file: DropFile
    table: Table
    columns: dict[str, tuple[str, ColumnType]]  # by lower-case name: the file's own spelling, and the type
    years: dict[int, str] = {}  # in a wide population table: column name by year
    misread: frozenset[str] = frozenset()  # of the columns that are read, those that DuckDB reads as another type

    @property
    def used(self) -> set[str]:
        """The columns that are read, by lower-case name."""
        return {*self.table.column_names, *self.years.values()} & set(self.columns)

    @property
    def read(self) -> list[str]:
        """The columns whose values are read, as the file spells them."""
        columns = (self.columns[name] for name in sorted(self.used | self.dated))
        return [own for own, held in columns if held is not PARTITION]

    @property
    def dated(self) -> set[str]:
        """The columns with the month of the file, by lower-case name."""
        return {UPDATED_AT, MONTH_CODE} & set(self.columns)

    @property
    def shape(self) -> Literal["long", "wide"]:
        """Whether years are columns ("wide") or rows."""
        return "wide" if self.years else "long"

    def finding(self, rule: str, message: str, **members: Any) -> Finding:
        """Returns a finding on this file. Its label goes before `message`."""
        label = self.file.label
        return make_finding(rule, f"{label} {message}", table=self.table.name, file=label, **members)


class Recognised(msgspec.Struct, frozen=True):
    """The recognised files of one drop, and all findings so far. Lives while the drop is read."""

    extracts: tuple[Extract, ...]
    findings: tuple[Finding, ...]


def recognise(connection: duckdb.DuckDBPyConnection, drop: Drop) -> Recognised:
    """Recognises every file of `drop`. A file that matches no table becomes an error that names the nearest one."""
    extracts: list[Extract] = []
    findings: list[Finding] = list(drop.findings)
    for file in drop.files:
        try:
            columns = read_columns(connection, file)
        except duckdb.Error as error:
            findings.append(_unreadable(file, sql.reason(error)))
            continue
        extract, problem = _match(file, columns.types)
        if problem is not None:
            findings.append(problem)
        if extract is None:
            continue
        if ambiguous := sorted(columns.twice & extract.used):
            message = f"has {_listed(ambiguous)} more than once, differing only in case or spaces"
            findings.append(extract.finding("ambiguous-column", message, column=ambiguous[0], count=len(ambiguous)))
        elif encrypted := encrypted_columns(connection, file.path, extract.read):
            findings.append(
                extract.finding(
                    "unreadable-file",
                    f"has encrypted columns: {', '.join(encrypted)}",
                    column=encrypted[0].lower() if len(encrypted) == 1 else None,
                    count=len(encrypted),
                    remedy="export it without encryption",
                )
            )
        else:
            misread = frozenset(columns.misread & (extract.used | extract.dated))
            extracts.append(msgspec.structs.replace(extract, misread=misread))
            findings.extend(_notes(extract))
    return Recognised(tuple(extracts), tuple(findings))


def _match(file: DropFile, columns: dict[str, tuple[str, ColumnType]]) -> tuple[Extract | None, Finding | None]:
    years = _year_columns(columns)
    own = [name for name, (_, held) in columns.items() if held is not PARTITION]
    if all(_HEADERLESS.fullmatch(name) for name in own):
        message = f"{file.label} has no column names ({', '.join(own[:3])}, ...)"
        return None, make_finding("unrecognised-file", message, file=file.label)
    table, score = nearest_table(columns)
    long = {"year", "tot_population"} <= set(columns)
    wide = years if table is POPULATION and not long else {}
    missing = _missing(table, columns, years)
    if not missing:
        return Extract(file, table, columns, wide), None
    misspelt = _misspelt(file, columns)
    if misspelt is not None:
        return None, misspelt
    if table is HOUSING and set(missing) < set(HOUSING_FIGURES):
        extract = Extract(file, table, columns, wide)
        message = f"looks like housing but lacks {_listed(missing)}, which the answers contain"
        return extract, extract.finding(
            "missing-figure", message, column=missing[0], figures=tuple(missing), count=len(missing)
        )
    similar = _similar(missing, set(own) - set(table.column_names))
    if not similar and sum(name in KNOWN_COLUMNS for name in own) < _FEWEST_COLUMNS and not years:
        return None, _foreign(file, own)
    rule = "missing-column" if score >= LEAST_SCORE else "unrecognised-file"
    message = (
        f"{file.label} looks like {table.name} but lacks {_listed(missing)}"
        if rule == "missing-column"
        else f"{file.label} matches no table; the nearest is {table.name}, but it lacks {_listed(missing)}"
    )
    return None, make_finding(
        rule,
        message,
        table=table.name,
        file=file.label,
        column=missing[0] if len(missing) == 1 else None,
        count=len(missing),
        samples=tuple(f"has {name}" for name in list(columns)[:5]),
        remedy="; ".join(["export the missing columns under these names", *similar]),
    )


def nearest_table(columns: Collection[str]) -> tuple[Table, float]:
    """Returns the table that best matches these lower-case column names, and the share of its columns among them."""
    years = _year_columns(columns)
    table = max(TABLES, key=lambda table: _rank(table, columns, years))
    return table, _score(table, columns, years)


def _rank(table: Table, columns: Iterable[str], years: dict[int, str]) -> tuple[bool, float, int]:
    """Returns how well a table matches (largest wins). Figures come first: their exports have location columns too."""
    have = _present(columns, table, years)
    figures = [name for name in table.distinctive if name in have]
    beyond = table is not LOCATIONS and len(figures) > 1
    return beyond, _score(table, columns, years), len(table.columns)


def _present(columns: Iterable[str], table: Table, years: dict[int, str]) -> set[str]:
    return {*columns, "year", "tot_population"} if table is POPULATION and years else set(columns)


def _score(table: Table, columns: Iterable[str], years: dict[int, str]) -> float:
    """Returns the share of the table's columns in the file, from 0 to 1. Distinctive columns count twice."""
    have = _present(columns, table, years)
    matched = sum(name in have for name in (*table.column_names, *table.distinctive))
    return matched / (len(table.columns) + len(table.distinctive))


def _missing(table: Table, columns: Iterable[str], years: dict[int, str]) -> list[str]:
    have = _present(columns, table, years)
    return [name for name in table.column_names if name not in have]


def _year_columns(columns: Iterable[str]) -> dict[int, str]:
    """Returns the column of each year in a wide population table. A counted year takes precedence over its forecast."""
    years: dict[int, str] = {}
    for name in sorted(columns, reverse=True):  # tot_fx... before tot_census..., which overwrites it
        match = WIDE_POPULATION.fullmatch(name)
        if match:
            years[int(match[2])] = name
    return dict(sorted(years.items()))


def _notes(extract: Extract) -> list[Finding]:
    used = extract.used
    all_years = [name for name in extract.columns if WIDE_POPULATION.fullmatch(name)]
    shadowed = [name for name in all_years if extract.years and name not in used]
    unnamed = [name for name in extract.columns if extract.table is HOUSING and _is_unnamed_figure(name)]
    known = {*used, *extract.dated, *shadowed, *unnamed}
    ignored = [name for name in extract.columns if name not in known]
    both = f"{len(shadowed)} year(s) have both a CENSUS and an FX column; the CENSUS column was used"
    notes = (
        ("not-in-v1", unnamed, f"ignored figure(s) that the v1 answers lack: {', '.join(unnamed)}", ()),
        ("year-in-both", shadowed, both, tuple(shadowed[:5])),
        ("ignored-column", ignored, f"ignored column(s) that no table needs: {', '.join(ignored)}", ()),
    )
    where = {"table": extract.table.name, "file": extract.file.label}
    return [
        make_finding(rule, message, count=len(names), samples=samples, **where)
        for rule, names, message, samples in notes
        if names
    ]


def _is_unnamed_figure(name: str) -> bool:
    return _HOUSING_FIGURE.fullmatch(name) is not None and name not in HOUSING_FIGURES


def _listed(names: list[str]) -> str:
    return f"column {names[0]}" if len(names) == 1 else f"columns {', '.join(names)}"


def _similar(missing: list[str], columns: Iterable[str]) -> list[str]:
    """Returns a question for each missing column that resembles a column of the file."""
    have = sorted(columns)
    return [f"{name}: is it {close[0]}?" for name in missing if (close := get_close_matches(name, have, n=1))]


def _foreign(file: DropFile, columns: list[str]) -> Finding:
    """Returns the finding on a file that is probably no table of a drop. The nearest table would not help."""
    fitting = [name for name in columns if name in KNOWN_COLUMNS]
    fits = f"only its column {fitting[0]} fits any" if fitting else "none of its columns fits any"
    return make_finding(
        "unrecognised-file",
        f"{file.label} matches no table: {fits}",
        file=file.label,
        count=len(columns),
        samples=tuple(f"has {name}" for name in columns[:5]),
        remedy="remove the file from the drop, or export it with the columns of a table: `forecast extracts contract`",
    )


def _misspelt(file: DropFile, columns: dict[str, tuple[str, ColumnType]]) -> Finding | None:
    """Returns the finding on a file that has the columns of a table in other spellings."""
    spellings = respelled([name for name, (_, held) in columns.items() if held is not PARTITION])
    ours = [spellings.get(name, name) for name in columns]
    table, score = nearest_table(ours)
    years = _year_columns(ours)
    other = {our: name for name, our in spellings.items() if our in (*table.column_names, *years.values())}
    if not other or score < LEAST_SCORE:
        return None
    cause, remedy = cause_of(other.values())
    missing = [*other, *_missing(table, ours, years)]
    renames = [f"{our} instead of {columns[name][0].strip()}" for our, name in list(other.items())[:_FEW_NAMES]]
    return make_finding(
        "missing-column",
        f"{file.label} looks like {table.name}, but {_listed(missing)} cannot be found; likely cause: {cause}",
        table=table.name,
        file=file.label,
        column=missing[0] if len(missing) == 1 else None,
        count=len(missing),
        samples=tuple(f"has {name}" for name in list(other.values())[:5]),
        cause=cause,
        remedy=f"{remedy}: {', '.join(renames)}{', ...' if len(other) > _FEW_NAMES else ''}",
    )


def _unreadable(file: DropFile, reason: str) -> Finding:
    fault = explain(file.path, "cannot be read as Parquet", reason)
    return make_finding("unreadable-file", f"{file.label} {fault.what}", file=file.label, remedy=fault.remedy)
