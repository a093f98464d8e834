"""Rules on the rows of staged tables. Most are one statement each, with the rule in its header (row_rules.sql)."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from warehouse import sql
from warehouse.rules.rule import Rule
from warehouse.schema.tables import ALIASES, LOCATIONS, LONGEST_TEXT, POPULATION, TABLES, Column, Table

KIND_DESCRIPTIONS = {
    "zip": "five-digit ZIP codes",
    "fips": "five-digit FIPS codes",
    "state": "two-letter state codes",
    "text": f"text of at most {LONGEST_TEXT:,} characters",
    "integer": "whole numbers",
    "real": "finite numbers",
    "date": "dates",
}

# The columns that a rule checks, by the word in its header.
_COLUMNS: dict[str, Callable[[Table, Column], bool]] = {
    "every": lambda *_: True,
    "required": lambda _, column: column.required,
    "optional": lambda table, column: not column.required and table is not POPULATION,
    "bounded": lambda _, column: column.maximum is not None,
    "unknowable": lambda _, column: column.unknown_below is not None,
    "names": lambda _, column: column.short,
    "place_names": lambda table, column: column.short and table in (LOCATIONS, ALIASES),
    "coordinates": lambda _, column: column.zero_within is not None,
    "states": lambda _, column: column.kind == "state",
    "words": lambda _, column: bool(column.meanings),
    "of_locations": lambda table, column: table.of_locations and column.name == "zip_code",
}


def _concerned(where: str) -> Callable[[Table], Sequence[Column | None]]:
    """Returns a function that lists the columns to check in a table; None stands for whole rows.

    `where` is a word of _COLUMNS, ``table.column``, the name of a table, or ``rows`` for any table.
    """
    if where in _COLUMNS:
        return lambda table: [column for column in table.columns if _COLUMNS[where](table, column)]
    name, _, column = where.partition(".")
    named = [table for table in TABLES if name in (table.name, "rows")]
    return lambda table: [table.column(column) if column else None] if table in named else []


def _rule(statement: sql.Statement) -> Rule:
    """Returns the rule that the header of a statement declares. Its first word is the field of `Rule` that names the
    statement: offends, faults or occurs.
    """
    header = statement.header
    holds, *options = header["rule"].split()
    given = dict(option.split("=") for option in options)
    concerns = _concerned(given.pop("concerns"))
    fields: dict[str, Any] = {
        "name": statement.name.replace("_", "-"),
        "about": statement.description,
        "message": header["finding"],
        "remedy": header["remedy"],
        "of": header.get("of", "").split(),
        "explains": header.get("explains", "").split(),
        "unit": "rows" if "limit" in given else "share",
        "override": "limit" in given,
        holds: statement.name,
        **given,
    }
    return msgspec.structs.replace(msgspec.convert(fields, Rule, strict=False), concerns=concerns)


ROW_RULES: tuple[Rule, ...] = (
    Rule(
        name="empty-table",
        about="A table must have rows.",
        remedy="leave the file out to keep the table of the current release",
    ),
    *(_rule(one) for one in sql.statements().values() if one.file == "row_rules.sql"),
    Rule(
        name="confusable-cities",
        severity="warning",
        about="One query finds both of two cities of a state whose names fold to the same form.",
        remedy="spell each city in one way",
    ),
)
