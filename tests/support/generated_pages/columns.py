"""The reference of the columns of a drop."""

from collections.abc import Iterator
from typing import Any

from tests.support.markdown import written_page, written_table
from warehouse.rules.all_rules import RuleLimits, shown_limit
from warehouse.rules.contract import open_data_contract
from warehouse.schema.tables import ALIASES, HOUSING_FIGURES, LOCATIONS, POPULATION, PROJECTS, TABLES, Column, Table

_HEAD = ("column", "type", "NULL allowed", "values")


def render_columns() -> str:
    contract = open_data_contract(RuleLimits(), {})
    types = {
        (one["name"], column["name"]): column["physicalType"]
        for one in contract["schema"]
        for column in one["properties"]
    }
    parts: list[str] = []
    for table in TABLES:
        rows = [(f"`{one.name}`", types[table.name, one.name], *_facts(table, one)) for one in table.columns]
        parts += [f"## {table.name}", _about(table), written_table(_HEAD, rows), *_more(table)]
    return written_page(
        "warehouse/schema/tables.py",
        "Columns of a drop",
        "This page has the type and the range of every column of a drop. Read it when you write the export. [What "
        "a drop contains](../publish/drops.md) explains tables and files, and [rules for drops](rules.md) all checks.",
        "Every file must have all columns of its table, also those that may be NULL. There are three exceptions: "
        "`updated_at` and `month_code` may be missing, a file of wide population has a column for each year instead of "
        "`year` and `tot_population`, and `--accept missing-figure` publishes a drop whose housing lacks a figure. The "
        "names of columns may be in any letter case and any order.",
        "Export the type in the tables, which has the name that Parquet gives it. [Types of columns](types.md) has its "
        "names in Snowflake, Spark, DuckDB and pyarrow, the other types that are read, and the refused ones.",
        "Text is trimmed, and empty text is NULL. ZIP and FIPS codes that are numbers get their leading zeros back. As "
        "text, they must have five digits. A column that may be NULL, and has no value in any row, causes a warning "
        "(`empty-column`). [Rules for drops](rules.md) has the rules that the tables name.",
        *parts,
        "## Columns of any table",
        "They date the table ([dates](../publish/drops.md#dates)). Both are optional.",
        written_table(
            _HEAD,
            [
                ("`updated_at`", "DATE", "yes", "2000-01-01 to 2100-01-01: the day of the export"),
                ("`month_code`", "INT64", "yes", "1 to 12: the month of the export"),
            ],
        ),
    )


def _about(table: Table) -> str:
    needed = "Every drop or the current release must have it" if table.needed else "Optional"
    key = " and ".join(
        [", ".join(f"`{name}`" for name in table.key[:-1])] * (len(table.key) > 1) + [f"`{table.key[-1]}`"]
    )
    left_out = " Rows whose ZIP code has no location are left out, with a warning." if table.of_locations else ""
    return f"{needed}. No two rows may have the same {key}.{left_out}"


def _facts(table: Table, column: Column) -> tuple[str, str]:
    return "no" if column.required else f"yes{_effect_of_null(table, column)}", "; ".join(_values(column))


def _effect_of_null(table: Table, column: Column) -> str:
    """Returns the end of a sentence that begins with "yes"; empty if NULL has no effect on other values."""
    if table is LOCATIONS:
        allowed = shown_limit("share", RuleLimits()["place-value-missing"])
        return f", in up to {allowed} of the ZIP codes (`place-value-missing`)"
    if table is ALIASES and column.name == "city_name":
        return ", but the row is left out, with a warning (`blank-alias`)"
    if table is POPULATION and column.name == "tot_population":
        return ", but the row is left out, with a warning (`empty-figure`)"
    return ""


def _values(column: Column) -> Iterator[str]:
    if column.kind in ("zip", "fips"):
        yield f"five digits, such as {'`00501`' if column.kind == 'zip' else '`01025`'}"
    elif column.kind == "state":
        yield "two letters: the postal code of a state, a territory or a military area"
    elif column.choices:
        yield f"one of {', '.join(f'`{word}`' for word in column.choices)}"
    elif column.kind == "text":
        yield f"at most {column.longest:,} characters" + (", none of them invisible" if column.short else "")
        if column.meanings:
            yield "words that `forecast extracts statuses` lists; others are answered as `unknown`, with a warning"
    elif column.kind == "date":
        yield "a date with a year of four digits"
    if column.maximum is not None:
        yield f"{_number(column.minimum)} to {_number(column.maximum)}"
    if column.zero_within is not None:
        near = f"{-column.zero_within:g} and {column.zero_within:g}"
        yield f"not between {near}, because 0 stands for an unknown place (`zero-coordinate`)"
    if column.unknown_below is not None:
        yield "a negative number means unknown and becomes NULL, with a warning"


def _number(value: Any) -> str:
    return f"{value:.0f}" if value in (1900, 2200) else f"{value:,.0f}"


def _more(table: Table) -> Iterator[str]:
    if table is POPULATION:
        figure, year = table.column("tot_population"), table.column("year")
        yield (
            f"All years from {year.minimum:.0f} to {year.maximum:.0f} are allowed, and none is required. If the "
            "current release has a year that the drop has in no ZIP code, this is an error that can be accepted "
            "(`vanished-figure`)."
        )
        yield "In the wide shape, a file has `zip_code` and at least one of these columns instead:"
        wide = ("INT64", "yes", "; ".join(_values(figure)))
        yield written_table(
            _HEAD,
            [
                ("`tot_census_pop_YEAR`, such as `tot_census_pop_2010`: counted", *wide),
                ("`tot_fx_pop_YEAR`, such as `tot_fx_pop_2025`: forecast", *wide),
            ],
        )
        yield "If a year has both columns, the counted one is used, with a warning."
    elif HOUSING_FIGURES[0] in table.column_names:
        yield "The years are fixed. A column of another year, such as `tot_home_available_2024`, is ignored."
    elif table is PROJECTS:
        yield "A project with neither a city and state nor a ZIP code that has a location is left out, with a warning."
