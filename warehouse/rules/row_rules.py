"""Rules on the rows of staged tables. Most are SQL (rules.sql)."""

from collections.abc import Callable, Sequence

from warehouse.rules.rule import CORRECT, Rule, Subject
from warehouse.schema.tables import (
    ALIASES,
    LOCATIONS,
    LONGEST_NAME,
    LONGEST_TEXT,
    POPULATION,
    PROJECTS,
    Column,
    Table,
)

KIND_DESCRIPTIONS = {
    "zip": "five-digit ZIP codes",
    "fips": "five-digit FIPS codes",
    "state": "two-letter state codes",
    "text": f"text of at most {LONGEST_TEXT:,} characters",
    "integer": "whole numbers",
    "real": "finite numbers",
    "date": "dates",
}


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


def _names(table: Table) -> Sequence[Column | None]:
    return [column for column in table.columns if column.short]


def _place_names(table: Table) -> Sequence[Column | None]:
    return _names(table) if table in (LOCATIONS, ALIASES) else []


def _coordinates(table: Table) -> Sequence[Column | None]:
    return [column for column in table.columns if column.zero_within is not None]


def _states(table: Table) -> Sequence[Column | None]:
    return [column for column in table.columns if column.kind == "state"]


def _words(table: Table) -> Sequence[Column | None]:
    return [column for column in table.columns if column.meanings]


def _of_locations(table: Table) -> Sequence[Column | None]:
    return [table.column("zip_code")] if table.of_locations else []


def _only(table: Table, column: str) -> Callable[[Table], Sequence[Column | None]]:
    return lambda one: [one.column(column)] if one is table else []


def _once(*tables: str) -> Callable[[Table], Sequence[Column | None]]:
    return lambda table: [None] if not tables or table.name in tables else []


*_OTHERS, _LAST = ALIASES.column("usps_status").choices
_ALIAS_STATUSES = f"{', '.join(_OTHERS)} or {_LAST}"
# What wrong names make look wrong besides.
_NAMES: tuple[Subject, ...] = ("city", "county", "alias")

ROW_RULES: tuple[Rule, ...] = (
    Rule(
        name="empty-table",
        about="A table must have rows.",
        remedy="leave the file out to keep the table of the current release",
    ),
    Rule(
        name="unreadable-value",
        about="Every value must fit its column: ZIP codes have five digits, whole numbers have no fraction.",
        remedy=CORRECT,
        offends="offends_unreadable_value",
        message="{count} value(s) of {table}.{column} are not {meaning}",
        concerns=_every,
    ),
    Rule(
        name="missing-value",
        about="A required column must have a value in every row.",
        remedy="add a value to every row",
        offends="offends_missing_value",
        message="{count} row(s) of {table} have no {column}",
        concerns=_required,
    ),
    Rule(
        name="odd-name",
        about=f"City and county names and project ids have at most {LONGEST_NAME} characters, none of them invisible.",
        remedy=CORRECT,
        offends="offends_odd_name",
        message="{count} value(s) of {table}.{column} are longer than {longest} characters or have invisible ones",
        concerns=_names,
    ),
    Rule(
        name="zero-coordinate",
        about="A latitude or longitude between -0.5 and 0.5 is in no state. A 0 stands for an unknown place.",
        remedy="leave unknown coordinates empty (NULL)",
        limit=0,
        unit="rows",
        override=True,
        offends="offends_zero_coordinate",
        message="{count} value(s) of {table}.{column} are 0",
        concerns=_coordinates,
        explains=("point",),
    ),
    Rule(
        name="unassigned-zip",
        about="The first three digits of a ZIP code must be ones that the Postal Service assigned to a state.",
        remedy="leave rows of totals and tests out; correct the others in the source",
        limit=0,
        unit="rows",
        override=True,
        offends="offends_unassigned_zip",
        message="{count} value(s) of {table}.{column} are no ZIP codes: no state has their first three digits",
        concerns=_only(LOCATIONS, "zip_code"),
        explains=("zip", "state", "city"),
    ),
    Rule(
        name="placeholder-name",
        of=("city",),
        about="City and county names must not be placeholders, numbers, or words for tests and totals.",
        remedy="leave missing names empty (NULL), and rows of tests and totals out",
        limit=0,
        unit="rows",
        override=True,
        offends="offends_placeholder_name",
        message="{count} value(s) of {table}.{column} are placeholders, numbers, or words for tests and totals",
        concerns=_place_names,
        explains=_NAMES,
    ),
    Rule(
        name="garbled-name",
        about="City and county names must not be escaped, or decoded with the wrong encoding.",
        remedy="read and write text as UTF-8 throughout, without escaping it",
        limit=0,
        unit="rows",
        override=True,
        offends="offends_garbled_name",
        message="{count} value(s) of {table}.{column} were decoded with the wrong encoding, or are escaped",
        concerns=_place_names,
        explains=_NAMES,
    ),
    Rule(
        name="state-in-name",
        about="City and county names must not end in their state, as in `Stowe, VT`: answers have it beside the name.",
        remedy="export the name alone",
        limit=0,
        unit="rows",
        override=True,
        offends="offends_state_in_name",
        message="{count} value(s) of {table}.{column} end in their state",
        concerns=_place_names,
        explains=_NAMES,
    ),
    Rule(
        name="unknown-state",
        about="State codes must be those of states, territories and military areas that have ZIP codes.",
        remedy=CORRECT,
        limit=0,
        unit="rows",
        override=True,
        offends="offends_unknown_state",
        message="{count} value(s) of {table}.{column} are not codes of states or territories",
        concerns=_states,
        explains=("state", "county", "point"),
    ),
    Rule(
        name="out-of-range",
        about="Figures and coordinates must be plausible: not negative, not absurdly large.",
        remedy=CORRECT,
        offends="offends_out_of_range",
        message="{count} value(s) of {table}.{column} are outside {minimum} to {maximum}",
        concerns=_bounded,
    ),
    Rule(
        name="duplicate-key",
        about="No two rows may have the same key: ZIP code, ZIP code and year, or project id.",
        remedy="keep one row for each key; check whether a file was delivered twice",
        faults="faults_duplicate_key",
        occurs="occurs_duplicate_key",
        summary="sum_up_duplicates",
        message="{count} rows of {table} share their {key} with another row",
        concerns=_once(),
    ),
    Rule(
        name="unknown-status",
        about=f"The status of an alias must be {_ALIAS_STATUSES}.",
        remedy=f"use {_ALIAS_STATUSES}",
        offends="offends_unknown_status",
        message="{count} row(s) of {table} have an unknown usps_status",
        concerns=_only(ALIASES, "usps_status"),
    ),
    Rule(
        name="orphan-rows",
        severity="warning",
        about="Figures and aliases of a ZIP code without a location are left out.",
        remedy="add them to the locations, if they exist",
        offends="offends_unlocated_zip",
        summary="sum_up_values",
        message="{count} ZIP code(s) of {table} have no location and were left out",
        concerns=_of_locations,
    ),
    Rule(
        name="empty-figure",
        severity="warning",
        about="Rows of a long population table without a figure are left out.",
        remedy="leave the rows out of the export",
        offends="offends_missing_value",
        message="{count} row(s) of {table} have no tot_population; those years were left out",
        concerns=_only(POPULATION, "tot_population"),
    ),
    Rule(
        name="blank-alias",
        severity="warning",
        about="Aliases without a name are left out.",
        remedy="leave the rows out of the export",
        offends="offends_missing_value",
        message="{count} row(s) of {table} have no {column} and were left out",
        concerns=_only(ALIASES, "city_name"),
    ),
    Rule(
        name="empty-column",
        severity="warning",
        about="A column without any value is null in answers that show it.",
        remedy="check the export, if values were expected",
        occurs="occurs_empty_column",
        summary="sum_up_empty_column",
        message="no row of {table} has a {column}",
        concerns=_optional,
    ),
    Rule(
        name="unknown-figure",
        severity="warning",
        about="A negative unit count of a project means unknown and is published as null.",
        remedy="leave unknown figures empty",
        offends="offends_unknown_figure",
        message="{count} negative value(s) of {table}.{column} are published as null",
        concerns=_unknowable,
    ),
    Rule(
        name="unmapped-status",
        severity="warning",
        about="A project status that the vocabulary lacks is answered as unknown, with the source's own word.",
        remedy="if it means a status that `forecast extracts statuses` lists, use a word listed there",
        offends="offends_unmapped_value",
        summary="sum_up_words",
        message="{count} row(s) of {table} have a {column} that the vocabulary lacks; it is answered as unknown",
        concerns=_words,
    ),
    Rule(
        name="unplaced-project",
        severity="warning",
        about="Projects without a city and state, and without a ZIP code that has a location, are left out.",
        remedy="add a city and a state, or a ZIP code",
        offends="offends_unplaced_project",
        message="{count} row(s) of {table} have no place that a query can name, and were left out",
        concerns=_once(PROJECTS.name),
    ),
    Rule(
        name="zip-without-location",
        severity="warning",
        about="Projects in a ZIP code without a location are served, with a null county.",
        remedy="correct the ZIP codes, or add them to the locations",
        offends="offends_unlocated_zip",
        summary="sum_up_values",
        message="{count} ZIP code(s) of {table} have no location; the county of projects there is null",
        concerns=_only(PROJECTS, "zip_code"),
    ),
    Rule(
        name="other-state",
        severity="warning",
        about="Projects whose ZIP code is in another state than their own are served as they are.",
        remedy="correct the ZIP code or the state",
        faults="faults_other_state",
        message="{count} row(s) of {table} have a ZIP code in another state than their own",
        concerns=_once(PROJECTS.name),
    ),
    Rule(
        name="implausible-project",
        severity="warning",
        about="Projects that end before they start, or have more affordable units than units, are served as they are.",
        remedy="correct the dates or the units in the source",
        offends="offends_implausible_project",
        value="value_of_implausible_project",
        message="{count} row(s) of {table} end before they start, or have more affordable units than units in total",
        concerns=_once(PROJECTS.name),
    ),
    Rule(
        name="confusable-cities",
        severity="warning",
        about="One query finds both of two cities of a state whose names fold to the same form.",
        remedy="spell each city in one way",
    ),
)
