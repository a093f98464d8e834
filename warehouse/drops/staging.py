"""Reads raw extracts into staged tables: our columns and types, and the text of values that could not be converted.

Each file is converted by its own types, so files of one table may disagree: an INTEGER file next to a VARCHAR file
still gives ``00501``.
"""

from collections.abc import Iterable
from pathlib import Path

import duckdb

from warehouse import sql
from warehouse.drops import parquet_integrity
from warehouse.drops.disk_budget import DiskBudget
from warehouse.drops.file_faults import explain
from warehouse.drops.recognition import Extract
from warehouse.files.remedies import is_disk_full
from warehouse.rules.all_rules import make_finding
from warehouse.schema.column_types import PARTITION, ColumnType, type_named
from warehouse.schema.findings import Finding
from warehouse.schema.progress import ProgressCallback
from warehouse.schema.tables import LONGEST_TEXT, POPULATION, ColumnKind, Table

_NO_BUDGET = DiskBudget(free=0, spill_limit=0, allowance=0)
_YEAR = POPULATION.column("year")
_FIRST_YEAR, _LAST_YEAR = int(_YEAR.minimum or 0), int(_YEAR.maximum or 9999)

_SQL_TYPES: dict[ColumnKind, str] = {
    "zip": "VARCHAR",
    "fips": "VARCHAR",
    "state": "VARCHAR",
    "text": "VARCHAR",
    "integer": "BIGINT",
    "real": "DOUBLE",
    "date": "DATE",
}


def staged_name(table: Table) -> str:
    """Returns the SQL name of a staged table."""
    return f"staged_{table.name}"


def stage(
    connection: duckdb.DuckDBPyConnection,
    extracts: Iterable[Extract],
    progress: ProgressCallback = lambda _: None,
    budget: DiskBudget = _NO_BUDGET,
) -> tuple[list[Table], list[Finding]]:
    """Stages every extract. Returns the tables of the drop, and findings on files that could not be read."""
    connection.execute(sql.statement("conversions", longest=str(LONGEST_TEXT)))
    connection.execute(sql.statement("distrust_statistics"))
    tables: dict[str, Table] = {}
    findings: list[Finding] = []
    for extract in extracts:
        if extract.table.name not in tables:
            tables[extract.table.name] = extract.table
            connection.execute(
                sql.statement("create_staged", staged=staged_name(extract.table), columns=_definition(extract.table))
            )
        progress(f"reading {extract.file.label}")
        try:
            damage = parquet_integrity.find_damage(extract.file.path, extract.read)
        except MemoryError:
            findings.append(
                extract.finding("oversized-file", "has values that unpack to more memory than a drop may use")
            )
            continue
        if damage is not None:
            findings.append(_unreadable_file(extract, "is damaged", damage))
            continue
        try:
            _insert(connection, extract)
        except duckdb.OutOfMemoryException as error:
            excess = budget.excess(error, Path())
            if excess is None:
                raise
            findings.append(extract.finding("reader-failed", excess))
        except duckdb.Error as error:
            if is_disk_full(error):
                raise  # the file is not to blame
            findings.append(_unreadable_file(extract, "cannot be read completely", sql.reason(error)))
        findings.extend(_impossible_years(extract))
    connection.execute(sql.statement("trust_statistics"))
    return list(tables.values()), findings


def _insert(connection: duckdb.DuckDBPyConnection, extract: Extract) -> None:
    rows = _wide_rows(extract) if extract.years else _rows(extract)
    if rows is not None:
        text = sql.statement("stage_extract", staged=staged_name(extract.table), rows=rows)
        connection.execute(text, {"file": extract.file.label, "path": sql.pattern(extract.file.path)})


def _rows(extract: Extract) -> str:
    """Returns the SELECT of the rows of a file."""
    values, unreadable = [], []
    for column in extract.table.columns:
        expression, held = source_of(extract, column.name)
        values.append(f"{converted(column.kind, expression, held)} AS {column.name}")
        if _always_fits(column.kind, held):
            unreadable.append("NULL")
            continue
        own = f"_own_{column.name}"
        values.append(f"{expression} AS {own}")
        unreadable.append(f"CASE WHEN {column.name} IS NULL THEN {text_present(column.kind, own, held)} END")
    return sql.statement(
        "extract_rows",
        names=", ".join(extract.table.column_names),
        values=", ".join(values),
        unreadable=", ".join(unreadable),
        **_numbering(extract),
    )


def _wide_rows(extract: Extract) -> str | None:
    """Returns the SELECT of the rows of a wide file; None if it has no possible year.

    One statement for all years lets DuckDB read several at once.
    """
    zip_code, year, figure = extract.table.columns
    years = []
    for number, column in (possible := _possible(extract.years)).items():
        source = source_of(extract, column)
        years.append(
            sql.statement(
                "year_rows",
                year=f"{number}::{_SQL_TYPES[year.kind]}",
                figure=converted(figure.kind, *source),
                unreadable=_unreadable(figure.kind, *source),
                source=f"'{column}'",
                condition=_present(*source),
            )
        )
    if not years:
        return None
    return sql.statement(
        "wide_rows",
        zip=converted(zip_code.kind, *source_of(extract, zip_code.name)),
        unreadable=_unreadable(zip_code.kind, *source_of(extract, zip_code.name)),
        figures=", ".join(source_of(extract, column)[0] for column in possible.values()),
        years="\nUNION ALL\n".join(years),
        **_numbering(extract),
    )


def _unreadable(kind: ColumnKind, expression: str, held: ColumnType) -> str:
    """Returns SQL for the text of a value that cannot be converted; NULL if it can, or if there is no value."""
    if _always_fits(kind, held):
        return "NULL"
    return f"CASE WHEN {converted(kind, expression, held)} IS NULL THEN {text_present(kind, expression, held)} END"


def _numbering(extract: Extract) -> dict[str, str]:
    numbered = "file_row_number" not in extract.columns  # DuckDB cannot add its own if the file has one
    row = "file_row_number + 1" if numbered else "row_number() OVER ()"
    return {"row": row, "numbered": str(numbered).lower()}


def source_of(extract: Extract, name: str) -> tuple[str, ColumnType]:
    """Returns the SQL expression and type of a column. The value of a partition folder is a text literal."""
    if name not in extract.columns:  # an accepted missing figure is NULL in every row
        return "NULL::VARCHAR", type_named("VARCHAR")
    own, held = extract.columns[name]
    if held is PARTITION:
        literal = extract.file.partitions.get(name, "").replace("'", "''")
        return f"'{literal}'::VARCHAR", held
    quoted = own.replace('"', '""')
    return f'"{quoted}"', held


def converted(kind: ColumnKind, expression: str, held: ColumnType) -> str:
    """Returns SQL for an expression of type `held` as our type, or NULL. Needs the macros that `stage` creates."""
    if _always_fits(kind, held):
        return f"{expression}::BIGINT"
    form = held.conversions.get(kind)
    return form.format(expression) if form else f"NULL::{_SQL_TYPES[kind]}"


def _always_fits(kind: ColumnKind, held: ColumnType) -> bool:
    """Returns whether every value of a type can be converted, so that none is unreadable."""
    return kind == "integer" and held.is_bigint


def _present(expression: str, held: ColumnType) -> str:
    """Returns SQL for whether there is a value. Blank text is not a value."""
    return f"clean_text({held.text.format(expression)}) IS NOT NULL" if held.is_text else f"{expression} IS NOT NULL"


def text_present(kind: ColumnKind, expression: str, held: ColumnType) -> str:
    """Returns SQL for the beginning of a value as text; NULL if there is no value.

    If no column of `kind` can be read from the type, it follows the value, as in `783.0::FLOAT16` (causes.py).
    """
    text = f"left({held.text.format(expression)}, 60)"  # NULL stays NULL
    if kind not in held.conversions:
        text = f"{text} || '::{held.name}'"
    return f"CASE WHEN {_present(expression, held)} THEN {text} END" if held.is_text else text


def _definition(table: Table) -> str:
    own = [f"{column.name} {_SQL_TYPES[column.kind]}" for column in table.columns]
    unreadable = [f"_unreadable_{column.name} VARCHAR" for column in table.columns]
    return ", ".join([*own, *unreadable, "_source VARCHAR", "_file VARCHAR", "_row BIGINT"])


def _possible(years: dict[int, str]) -> dict[int, str]:
    return {year: column for year, column in years.items() if _FIRST_YEAR <= year <= _LAST_YEAR}


def _impossible_years(extract: Extract) -> list[Finding]:
    """Returns one finding for all columns of impossible years, instead of one for each of their rows."""
    possible = _possible(extract.years)
    columns = [column for year, column in extract.years.items() if year not in possible]
    if not columns:
        return []
    message = f"{len(columns):,} column(s) of {extract.file.label} are for years outside {_FIRST_YEAR} to {_LAST_YEAR}"
    found_in = {"table": extract.table.name, "file": extract.file.label, "column": columns[0]}
    return [make_finding("out-of-range", message, count=len(columns), samples=tuple(columns[:5]), **found_in)]


def _unreadable_file(extract: Extract, prefix: str, reason: str) -> Finding:
    fault = explain(extract.file.path, prefix, reason)
    return extract.finding("unreadable-file", fault.what, remedy=fault.remedy)
