"""Checks a staged drop against all rules, and reports all findings at once."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import duckdb
import msgspec

from warehouse import sql
from warehouse.drops.staging import staged_name
from warehouse.places.names import fold_city
from warehouse.rules.all_rules import RuleLimits, make_finding
from warehouse.rules.causes import cause_named, causes_of
from warehouse.rules.row_rules import KIND_DESCRIPTIONS, ROW_RULES
from warehouse.rules.rule import Rule
from warehouse.schema.findings import Finding
from warehouse.schema.states import STATES
from warehouse.schema.tables import CONTROL_CHARACTERS, LOCATIONS, Column, Table

# Bounds beyond every figure, for columns without bounds of their own.
_NO_MINIMUM, _NO_MAXIMUM = -1e18, 1e18
_SAMPLES = 5
_LONGEST_VALUE = 60  # characters of a value in a sample


class Validation(msgspec.Struct, frozen=True):
    """The findings of validating a drop. Created once for a drop, by `validate`."""

    findings: tuple[Finding, ...]
    faults: dict[str, list[str]]  # by rule: statements that select all failing rows


def validate(
    connection: duckdb.DuckDBPyConnection,
    tables: Sequence[Table],
    locations: str | None,
    earlier: Sequence[Finding] = (),
    limits: RuleLimits | None = None,
) -> Validation:
    """Checks the staged `tables`.

    `locations` is the FROM expression for the locations in effect: the drop's own, or those of the current release.
    `earlier` findings are those on files; if they explain an empty table, it gets no finding of its own.
    """
    findings: list[Finding] = []
    faults: dict[str, list[str]] = defaultdict(list)
    shown: set[tuple[str, int]] = set()
    allowed = limits or RuleLimits()
    broken = {finding.table for finding in earlier if finding.severity == "error"}
    for table in tables:
        rows, checks = _with_offenders(connection, table, list(_checks(table, locations)))
        if not rows:
            if table.name not in broken:
                message = f"{table.name} has no rows in any of its files"
                findings.append(make_finding("empty-table", message, table=table.name))
            continue
        for check in checks:
            room = allowed[check.rule.name] if check.rule.limit is not None else 0
            found = [one for one in _apply(connection, check, shown) if one.count > room]
            findings += found
            if found and "faults" in check.parts:
                faults[check.rule.name].append(sql.statement("faults_of_table", **check.parts, table=table.name))
    if LOCATIONS in tables:
        findings.extend(_confusable_cities(connection, staged_name(LOCATIONS)))
    return Validation(tuple(_folded(findings, earlier)), dict(faults))


# Errors that make locations lack ZIP codes, if they concern the whole table or its ZIP codes.
_LOSES_LOCATIONS = {
    "unreadable-file",
    "oversized-file",
    "unrecognised-file",
    "missing-column",
    "ambiguous-column",
    "reader-failed",
    "empty-table",
    "unreadable-value",
    "missing-value",
}


def _folded(findings: Sequence[Finding], earlier: Sequence[Finding]) -> Iterator[Finding]:
    """Yields the findings, with consequences of others marked.

    Gaps follow from an error that makes locations lack ZIP codes. Repeated rows follow from files of different months.
    A column without values follows from files without the column.
    """
    of_locations = (finding for finding in (*earlier, *findings) if finding.table == LOCATIONS.name)
    lost = (one.rule for one in of_locations if one.rule in _LOSES_LOCATIONS and one.column in (None, "zip_code"))
    cause = next(lost, None)
    mixed = {finding.table for finding in earlier if finding.rule == "mixed-months"}
    absent = {(finding.table, figure) for finding in earlier for figure in finding.figures}
    for finding in findings:
        follows = None
        if finding.rule == "empty-column" and (finding.table, finding.column) in absent:
            follows = "missing-figure"
        elif finding.rule in _NEED_LOCATIONS:
            follows = cause
        elif finding.rule == "duplicate-key" and finding.table in mixed:
            follows = "mixed-months"
        yield msgspec.structs.replace(finding, follows=follows)


# Rules whose failing values can show their cause.
_CAUSED = ("unreadable-value", "out-of-range")


class _Check(msgspec.Struct, frozen=True):
    """One rule to run on one table, or on one of its columns. `parts` fills the placeholders of its statement."""

    rule: Rule
    table: Table
    column: Column | None
    parts: dict[str, str]


def _checks(table: Table, locations: str | None) -> Iterator[_Check]:
    for rule in ROW_RULES:
        if not rule.statements or (locations is None and rule.name in _NEED_LOCATIONS):
            continue
        for column in rule.concerns(table):
            parts = _parts(table, column, locations or "")
            if rule.offends is not None:
                parts["offends"] = sql.statement(rule.offends, **parts)
                parts["value"] = sql.statement(rule.value, **parts) if rule.value else _value(column)
                parts["cause"] = _cause(column) if rule.name in _CAUSED and column else "NULL"
            if rule.occurs is not None:
                parts["occurs"] = sql.statement(rule.occurs, **parts)
            elif rule.offends is not None:
                parts["occurs"] = f"bool_or({parts['offends']})"
            faults = rule.faults or (rule.offends and "faults_where")
            if faults:
                parts["faults"] = sql.statement(faults, **parts)
            yield _Check(rule, table, column, parts)


_NEED_LOCATIONS = {
    rule.name for rule in ROW_RULES if any("{locations}" in sql.statements()[name].text for name in rule.statements)
}


def _value(column: Column | None) -> str:
    """Returns SQL for the failing value of a column, as text."""
    return f"coalesce({column.name}::VARCHAR, _unreadable_{column.name})" if column else "NULL"


def _cause(column: Column) -> str:
    """Returns SQL for the likely cause of a failing value."""
    typed = f"clean_text({_value(column)})"
    value = f"regexp_replace({typed}, '::[A-Z0-9_ ]+$', '')"
    cases = (
        f"WHEN regexp_full_match({typed if cause.of_type else value}, '{sql.quoted(cause.pattern)}', 's')"
        f" THEN '{sql.quoted(cause.name)}'"
        for cause in causes_of(column.kind)
    )
    return f"CASE {' '.join(cases)} END"


def _with_offenders(
    connection: duckdb.DuckDBPyConnection, table: Table, checks: Sequence[_Check]
) -> tuple[int, list[_Check]]:
    """Returns the number of rows, and the checks that need to run.

    One statement evaluates `occurs` of all rules that have it. Checks for which no row fails are left out.
    """
    predicates = [check.parts["occurs"] for check in checks if "occurs" in check.parts]
    text = sql.statement("any_offends", staged=staged_name(table), predicates=", ".join(predicates))
    ((rows, *answers),) = connection.execute(text).fetchall()
    occurs = iter(answers)
    return int(rows), [check for check in checks if "occurs" not in check.parts or next(occurs)]


def _parts(table: Table, column: Column | None, locations: str) -> dict[str, str]:
    # a figure that means "unknown" is not out of range
    floor = _NO_MINIMUM if column and column.unknown_below is not None else _minimum(column)
    name = column.name if column else ""
    return {
        "staged": staged_name(table),
        "column": name,
        "identity": _identity(table, name),
        # in a wide table, the column of a figure
        "source": "_source" if column and column.name in table.distinctive and not column.required else "NULL",
        "key": ", ".join(table.key),
        "known": " AND ".join(f"{part} IS NOT NULL" for part in table.key),
        "described": " || ' ' || ".join(table.key),
        "minimum": repr(floor),
        "maximum": repr(_maximum(column)),
        "bound": str(column.unknown_below if column and column.unknown_below is not None else 0),
        "locations": locations,
        "city": sql.statement("named_city", value="city_name"),
        "folded": sql.statement("folded_text", value=name),
        "longest": str(column.longest if column else 0),
        "control": CONTROL_CHARACTERS,
        "zero": str(column.zero_within if column and column.zero_within is not None else 0),
        "choices": _listed(column.choices if column else ()),
        "words": _listed(column.meanings if column else ()),
        "unassigned": _UNASSIGNED,
    }


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"'{sql.quoted(word)}'" for word in words)


# Few: planning a statement with all assigned ones takes longer than the rest of it.
_UNASSIGNED = _listed(sorted({f"{n:03}" for n in range(1000)}.difference(*(state.zip_prefixes for state in STATES))))


def _minimum(column: Column | None) -> float:
    return column.minimum if column and column.minimum is not None else _NO_MINIMUM


def _maximum(column: Column | None) -> float:
    return column.maximum if column and column.maximum is not None else _NO_MAXIMUM


def _apply(connection: duckdb.DuckDBPyConnection, check: _Check, shown: set[tuple[str, int]]) -> Iterator[Finding]:
    rule, table, column = check.rule, check.table, check.column
    text = sql.statement(rule.summary or "sum_up_rows", **check.parts)
    name = column.name if column else ""
    for file, cause, count, samples in connection.execute(text).fetchall():
        message = rule.message.format(
            count=f"{count:,}",
            table=table.name,
            column=name,
            key=" and ".join(table.key),
            meaning=KIND_DESCRIPTIONS[column.kind] if column else "",
            minimum=_shown(_minimum(column)),
            maximum=_shown(_maximum(column)),
            longest=column.longest if column else 0,
        )
        yield make_finding(
            rule.name,
            f"{message}; likely cause: {cause}" if cause else message,
            table=table.name,
            file=file,
            column=name or None,
            count=int(count),
            measured=int(count) if rule.limit is not None else None,
            samples=_samples(file, samples, shown),
            cause=cause,
            remedy=cause_named(column.kind, cause).remedy if cause and column else rule.remedy,
        )


def _samples(file: str, candidates: Sequence[Any], shown: set[tuple[str, int]]) -> tuple[str, ...]:
    """Returns some `candidates`, one for each row. Rows of other findings are used only if there are no others."""
    if not all(isinstance(candidate, dict) for candidate in candidates):
        return tuple(str(candidate) for candidate in candidates)
    rows = {one["row"]: one for one in reversed(candidates)}
    fresh = sorted(row for row in rows if (file, row) not in shown)
    chosen = fresh[:_SAMPLES] or sorted(rows)[:1]
    shown.update((file, row) for row in chosen)
    return tuple(_sample(rows[row]) for row in chosen)


def _sample(fault: dict[str, Any]) -> str:
    key = f" {fault['key']}" if fault["key"] else ""
    has = f" has {fault['value'][:_LONGEST_VALUE]}" if fault["value"] is not None else ""
    return f"row {fault['row']}{key}{has}{' in ' + fault['source'] if fault['source'] else ''}"


def _shown(bound: float) -> str:
    return f"{bound:,.0f}" if abs(bound) >= 10_000 else f"{bound:.0f}"  # a year like 1900 has no comma


def _identity(table: Table, column: str) -> str:
    """Returns SQL for the rest of a row's key, besides `column`."""
    parts = [f"{key}::VARCHAR" for key in table.key if key != column]
    return f"concat_ws(' ', {', '.join(parts)})" if parts else "NULL"


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
            f"{len(confusable)} group(s) of cities have names that fold to the same form, so one query finds them all",
            table=LOCATIONS.name,
            column="city_name",
            count=len(confusable),
            samples=tuple(confusable[:5]),
        )
    ]
