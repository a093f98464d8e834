"""The reference of the types that a column of a drop can have."""

from tests.support.markdown import written_page, written_table
from warehouse.schema.column_types import TYPES, ColumnType
from warehouse.schema.tables import ColumnKind

# The kinds of columns of a drop, with their titles. FIPS codes are read like ZIP codes.
_KINDS: dict[ColumnKind, str] = {
    "zip": "ZIP or FIPS code",
    "state": "state code",
    "text": "text",
    "integer": "whole number",
    "real": "coordinate",
    "date": "date",
}

# The names of the usual types: DuckDB's, then those of others.
_NAMES = (
    ("`VARCHAR`", "STRING", "`VARCHAR`", "`string`", "`string`"),
    ("`BIGINT`", "INT64", "none: unloads `NUMBER(38,0)` as a decimal", "`bigint`", "`int64`"),
    ("`INTEGER`", "INT32", "none", "`int`", "`int32`"),
    ("`DOUBLE`", "DOUBLE", "`FLOAT`", "`double`", "`float64` (`double`)"),
    ("`FLOAT`", "FLOAT", "none", "`float`", "`float32` (`float`)"),
    ("`DECIMAL(p,s)`", "DECIMAL", "`NUMBER(p,s)`", "`decimal(p,s)`", "`decimal128(p, s)`"),
    ("`DATE`", "DATE", "`DATE`", "`date`", "`date32`"),
    ("`TIMESTAMP`", "TIMESTAMP, not adjusted to UTC", "`TIMESTAMP_NTZ`", "`timestamp_ntz`", "`timestamp('us')`"),
    (
        "`TIMESTAMP WITH TIME ZONE`",
        "TIMESTAMP, adjusted to UTC",
        "none: cast it to `DATE`",
        "`timestamp`",
        "`timestamp('us', 'UTC')`",
    ),
)


def render_types() -> str:
    alike: dict[tuple[str, ...], dict[str, None]] = {}
    for one in TYPES:
        uses = ("yes" if kind in one.conversions else "no" for kind in _KINDS)
        if one.name not in ("NULL", "UNKNOWN"):
            alike.setdefault((*uses, one.remedy.format("see the last row")), {})[f"`{_label(one)}`"] = None
    rows = [(", ".join(names), *cells) for cells, names in alike.items()]
    instead = ColumnType("")
    return written_page(
        "warehouse/schema/column_types.py",
        "Types of columns",
        "Every type that a column of a Parquet file can have, in the names of DuckDB, and the kinds of columns that "
        "can be read from it. Where the table says yes, every value that fits the column is read exactly, without "
        "rounding; a value that does not fit is an error with its row. Otherwise a column with any value is refused by "
        "the name of its type.",
        "The same types have other names elsewhere. A decimal without a fraction is `DECIMAL(p,0)`:",
        written_table(("here", "Parquet", "Snowflake", "Spark", "pyarrow"), _NAMES),
        written_table(
            ("type", *_KINDS.values(), "what to do"),
            [*rows, ("export instead", *map(instead.remedy_for, _KINDS), "")],
        ),
    )


def _label(held: ColumnType) -> str:
    """Returns the name of a type. Decimals have several rows."""
    if held.name != "DECIMAL":
        return held.name
    return "DECIMAL(p,0)" if held.pattern.endswith(r",0\)") else "DECIMAL(p,s)"
