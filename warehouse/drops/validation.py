"""Checks a staged drop against all rules, and reports all findings at once."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

import duckdb
import msgspec

from warehouse import sql
from warehouse.drops.staging import staged_name
from warehouse.places.city_names import fold_city
from warehouse.rules.all_rules import make_finding
from warehouse.rules.row_rules import KIND_DESCRIPTIONS, ROW_RULES
from warehouse.rules.rule import Rule
from warehouse.schema.findings import Finding
from warehouse.schema.tables import LOCATIONS, Column, Table

# Bounds beyond every figure, for columns without bounds of their own.
_NO_MINIMUM, _NO_MAXIMUM = -1e18, 1e18


def validate(
    connection: duckdb.DuckDBPyConnection,
    tables: Sequence[Table],
    locations: str | None,
    broken: Collection[str | None] = (),
) -> list[Finding]:
    """Findings on the staged `tables`.

    `locations` is the FROM expression for the locations in effect: the drop's own, or those of the current release.
    `broken` names tables that already have an error.
    """
    findings: list[Finding] = []
    for table in tables:
        if not _rows(connection, table):
            findings += [] if table.name in broken else [_empty(table)]
            continue
        for check in _with_offenders(connection, table, _checks(table, locations)):
            findings.extend(_apply(connection, check))
    if LOCATIONS in tables:
        findings.extend(_confusable_cities(connection, staged_name(LOCATIONS)))
    return findings


class _Check(msgspec.Struct, frozen=True):
    """One rule to run on one table, or on one of its columns. `parts` fills the placeholders of its statement."""

    rule: Rule
    table: Table
    column: Column | None
    parts: dict[str, str]


def _checks(table: Table, locations: str | None) -> Iterator[_Check]:
    for rule in ROW_RULES:
        if rule.statement is None or (locations is None and "{locations}" in sql.statements()[rule.statement].text):
            continue
        for column in rule.concerns(table):
            parts = _parts(table, column, locations or "")
            if rule.offends is not None:
                parts["offends"] = sql.statement(rule.offends, **parts)
            yield _Check(rule, table, column, parts)


def _with_offenders(connection: duckdb.DuckDBPyConnection, table: Table, checks: Iterable[_Check]) -> Iterator[_Check]:
    """The checks that can find something. One scan evaluates the predicates (`offends`) of all rules that have one."""
    checks = list(checks)
    asked = [check.parts["offends"] for check in checks if check.rule.offends is not None]
    if not asked:
        yield from checks
        return
    predicates = ", ".join(f"bool_or({predicate})" for predicate in asked)
    text = sql.statement("any_offends", staged=staged_name(table), predicates=predicates)
    (answers,) = connection.execute(text).fetchall()
    offended = iter(answers)
    for check in checks:
        if check.rule.offends is None or next(offended):
            yield check


def _parts(table: Table, column: Column | None, locations: str) -> dict[str, str]:
    # a figure that means "unknown" is not out of range
    floor = _NO_MINIMUM if column and column.unknown_below is not None else _minimum(column)
    name = column.name if column else ""
    return {
        "staged": staged_name(table),
        "column": name,
        "identity": _identity(table, name),
        "key": ", ".join(table.key),
        "known": " AND ".join(f"{part} IS NOT NULL" for part in table.key),
        "described": " || ' ' || ".join(table.key),
        "minimum": repr(floor),
        "maximum": repr(_maximum(column)),
        "bound": str(column.unknown_below if column and column.unknown_below is not None else 0),
        "locations": locations,
        "city": sql.statement("named_city", value="city_name"),
        "folded": sql.statement("folded_text", value=name),
        "words": ", ".join(f"'{sql.quoted(word)}'" for word in (column.meanings if column else ())),
    }


def _minimum(column: Column | None) -> float:
    return column.minimum if column and column.minimum is not None else _NO_MINIMUM


def _maximum(column: Column | None) -> float:
    return column.maximum if column and column.maximum is not None else _NO_MAXIMUM


def _apply(connection: duckdb.DuckDBPyConnection, check: _Check) -> Iterator[Finding]:
    rule, table, column = check.rule, check.table, check.column
    text = sql.statement(rule.statement or "", **check.parts)
    name = column.name if column else ""
    for file, count, samples in connection.execute(text).fetchall():
        yield make_finding(
            rule.name,
            rule.message.format(
                count=f"{count:,}",
                table=table.name,
                column=name,
                key=" and ".join(table.key),
                meaning=KIND_DESCRIPTIONS[column.kind] if column else "",
                minimum=_shown(_minimum(column)),
                maximum=_shown(_maximum(column)),
            ),
            table=table.name,
            file=file,
            column=name or None,
            count=int(count),
            samples=tuple(str(sample) for sample in samples),
        )


def _shown(bound: float) -> str:
    return f"{bound:,.0f}" if abs(bound) >= 10_000 else f"{bound:.0f}"  # a year like 1900 has no comma


def _identity(table: Table, column: str) -> str:
    """SQL text that identifies a row in the samples."""
    parts = [f"coalesce(' ' || {key}::VARCHAR, '')" for key in table.key if key != column]
    return " || ".join(parts) or "''"


def _rows(connection: duckdb.DuckDBPyConnection, table: Table) -> int:
    row = connection.execute(sql.statement("count_staged", staged=staged_name(table))).fetchone()
    return int(row[0]) if row else 0


def _empty(table: Table) -> Finding:
    return make_finding("empty-table", f"{table.name} has no rows in any of its files", table=table.name)


def _confusable_cities(connection: duckdb.DuckDBPyConnection, locations: str) -> list[Finding]:
    spellings: dict[tuple[str, str], list[str]] = defaultdict(list)
    for state, city in connection.execute(sql.statement("distinct_cities", locations=locations)).fetchall():
        spellings[state, fold_city(city)].append(city)
    confusable = [f"{state}: {', '.join(cities)}" for (state, _), cities in spellings.items() if len(cities) > 1]
    if not confusable:
        return []
    return [
        make_finding(
            "confusable-cities",
            f"{len(confusable)} group(s) of cities are found by the same query: their names fold to the same form",
            table=LOCATIONS.name,
            column="city_name",
            count=len(confusable),
            samples=tuple(confusable[:5]),
        )
    ]
