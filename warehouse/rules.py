"""The rules that a staged drop must keep: what each is called, how grave it is, and what it says."""

from collections.abc import Callable, Sequence

import msgspec

from warehouse.findings import Severity
from warehouse.tables import ALIASES, POPULATION, Column, Table


class Rule(msgspec.Struct, frozen=True):
    """`statement` names the SQL that finds offending rows; `concerns` lists the columns of a table it is run for."""

    name: str
    severity: Severity
    statement: str
    message: str
    remedy: str
    concerns: Callable[[Table], Sequence[Column | None]]


def _every(table: Table) -> Sequence[Column | None]:
    return table.columns


def _required(table: Table) -> Sequence[Column | None]:
    return [column for column in table.columns if column.required]


def _bounded(table: Table) -> Sequence[Column | None]:
    return [column for column in table.columns if column.maximum is not None]


def _unknowable(table: Table) -> Sequence[Column | None]:
    return [column for column in table.columns if column.unknown_below is not None]


def _optional(table: Table) -> Sequence[Column | None]:
    return [column for column in table.columns if not column.required and table is not POPULATION]


def _alias_names(table: Table) -> Sequence[Column | None]:
    return [table.column("city_name")] if table is ALIASES else []


def _once(*tables: str) -> Callable[[Table], Sequence[Column | None]]:
    return lambda table: [None] if not tables or table.name in tables else []


RULES: tuple[Rule, ...] = (
    Rule(
        "unreadable-value",
        "error",
        "rule_unreadable_value",
        "{count} value(s) of {table}.{column} are not {meaning}",
        "correct them in the source and export again",
        _every,
    ),
    Rule(
        "missing-value",
        "error",
        "rule_missing_value",
        "{count} row(s) of {table} have no {column}",
        "every row needs one",
        _required,
    ),
    Rule(
        "out-of-range",
        "error",
        "rule_out_of_range",
        "{count} value(s) of {table}.{column} are outside {minimum:g} to {maximum:g}",
        "correct them in the source and export again",
        _bounded,
    ),
    Rule(
        "duplicate-key",
        "error",
        "rule_duplicate_key",
        "{count} rows of {table} share their {key}",
        "one row for each; was a file dropped twice?",
        _once(),
    ),
    Rule(
        "unknown-status",
        "error",
        "rule_unknown_status",
        "{count} row(s) of {table} have an unknown usps_status",
        "primary, acceptable or unacceptable",
        _once("aliases"),
    ),
    Rule(
        "orphan-rows",
        "warning",
        "rule_orphan_rows",
        "{count} ZIP code(s) of {table} have no location and were left out",
        "add them to the locations, if they exist",
        _once("population", "housing", "aliases"),
    ),
    Rule(
        "empty-figure",
        "warning",
        "rule_empty_figure",
        "{count} row(s) of {table} have no tot_population; those years were left out",
        "leave the rows out of the export",
        _once("population"),
    ),
    Rule(
        "blank-alias",
        "warning",
        "rule_missing_value",
        "{count} row(s) of {table} have no {column} and were left out",
        "leave the rows out of the export",
        _alias_names,
    ),
    Rule(
        "empty-column",
        "warning",
        "rule_empty_column",
        "no row of {table} has a {column}; it is published as null",
        "check the export, if figures were expected",
        _optional,
    ),
    Rule(
        "unknown-figure",
        "warning",
        "rule_unknown_figure",
        "{count} negative value(s) of {table}.{column} are published as null",
        "leave unknown figures empty",
        _unknowable,
    ),
)

MEANINGS = {
    "zip": "five-digit ZIP codes",
    "fips": "five-digit FIPS codes",
    "state": "two-letter state codes",
    "text": "text",
    "integer": "whole numbers",
    "real": "finite numbers",
    "date": "dates",
}
