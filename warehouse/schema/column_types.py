"""The table of types: every type that a column of a Parquet file can have, and the kinds of columns that it can become.

A type has the name that DuckDB has for it, unless DuckDB reads it as another type (`column_types` in staging.sql).
"""

import re
from collections.abc import Mapping
from functools import lru_cache

import msgspec

from warehouse.schema.tables import ColumnKind

# Kind of the column -> SQL that converts a value, {}, exactly, or to NULL if it does not fit. Its macros: staging.sql.
Conversions = Mapping[ColumnKind, str]

_TEXT: Conversions = {
    "zip": "digits_of_text({})",
    "fips": "digits_of_text({})",
    "state": "state_of_text({})",
    "text": "short_text({})",
    "integer": "whole_of_text({})",
    "real": "real_of_text({})",
    "date": "date_of_any({})",
}
_WHOLE: Conversions = {
    "zip": "digits_of_whole({})",
    "fips": "digits_of_whole({})",
    "text": "short_text({})",
    "integer": "whole_of_whole({})",
    "real": "real_of_number({})",
}
_FRACTION: Conversions = {
    "zip": "digits_of_fraction({})",
    "fips": "digits_of_fraction({})",
    "integer": "whole_of_fraction({})",
    "real": "real_of_number({})",
}
# Copied as text (exact_copies.py), because DuckDB would round them.
_WIDE_FRACTION: Conversions = {
    "zip": "digits_of_whole(whole_of_text({}))",
    "fips": "digits_of_whole(whole_of_text({}))",
    "integer": "whole_of_text({})",
    "real": "real_of_text({})",
}
_DAY: Conversions = {"date": "date_of_any({})"}

_SHIFTED = "check whether the columns of the export are shifted"
_INSIDE = "export the value inside as a column of its own"

# What to export for each kind of column, instead of a type that it cannot be read from.
_EXPORTS: Mapping[ColumnKind, str] = {
    "zip": "export text of five digits",
    "fips": "export text of five digits",
    "state": "export the postal code of two letters as text",
    "text": "export it as text",
    "integer": "export it as BIGINT",
    "real": "export it as DOUBLE",
    "date": "export a DATE, or text such as 2026-10-05",
}


class ColumnType(msgspec.Struct, frozen=True):
    """One type. Declared below, constant."""

    name: str
    conversions: Conversions = {}  # columns of other kinds are refused
    pattern: str = ""  # regular expression for the whole name that DuckDB has for it; empty: `name`
    remedy: str = ""  # {} stands for what to export for the kind of the column; empty: only that
    text: str = "{}::VARCHAR"  # SQL for a value as text
    is_text: bool = False  # blank values are no values
    is_bigint: bool = False  # every value is a BIGINT, so none is unreadable as an integer

    def remedy_for(self, kind: ColumnKind) -> str:
        """Returns what to do about a column of `kind` that cannot be read from this type."""
        return (self.remedy or "{}").format(_EXPORTS[kind])


# The value of a key=value folder.
PARTITION = ColumnType("PARTITION", _TEXT, is_text=True)

# The first whose pattern matches describes a type.
TYPES: tuple[ColumnType, ...] = (
    ColumnType("LIST", pattern=r".*\]"),
    ColumnType("STRUCT", pattern=r"STRUCT\(.*"),
    ColumnType("MAP", pattern=r"MAP\(.*"),
    ColumnType("VARCHAR", _TEXT, is_text=True),
    ColumnType("ENUM", _TEXT, r"ENUM\(.*", is_text=True),
    ColumnType(
        "BLOB",
        {kind: form.format("text_of_bytes({})") for kind, form in _TEXT.items()},
        text="shown_bytes({})",
        is_text=True,
    ),
    ColumnType("TINYINT", _WHOLE, is_bigint=True),
    ColumnType("SMALLINT", _WHOLE, is_bigint=True),
    ColumnType("INTEGER", _WHOLE, is_bigint=True),
    ColumnType("BIGINT", _WHOLE, is_bigint=True),
    ColumnType("HUGEINT", _WHOLE),
    ColumnType("UTINYINT", _WHOLE, is_bigint=True),
    ColumnType("USMALLINT", _WHOLE, is_bigint=True),
    ColumnType("UINTEGER", _WHOLE, is_bigint=True),
    ColumnType("UBIGINT", _WHOLE),
    ColumnType("UHUGEINT", _WHOLE),
    ColumnType("FLOAT16", remedy="FLOAT16 rounds: {}"),
    ColumnType("FLOAT", _FRACTION),
    ColumnType("DOUBLE", _FRACTION),
    ColumnType("DECIMAL", _WHOLE, r"DECIMAL\(([1-9]|[12][0-9]|3[0-8]),0\)"),
    ColumnType("DECIMAL", _FRACTION, r"DECIMAL\(([1-9]|[12][0-9]|3[0-8]),[0-9]+\)"),
    ColumnType("DECIMAL", {**_WIDE_FRACTION, "text": "short_text({})"}, r"DECIMAL\([0-9]+,0\)"),
    ColumnType("DECIMAL", _WIDE_FRACTION, r"DECIMAL\([0-9]+,[0-9]+\)"),
    ColumnType("DATE", _DAY),
    ColumnType("TIMESTAMP", _DAY),
    ColumnType("TIMESTAMP_S", _DAY),
    ColumnType("TIMESTAMP_MS", _DAY),
    ColumnType("TIMESTAMP_NS", _DAY),
    ColumnType("TIMESTAMP WITH TIME ZONE", _DAY),
    ColumnType("TIMESTAMPTZ_NS", _DAY),
    ColumnType("TIME", remedy=_SHIFTED),
    ColumnType("TIME_NS", remedy=_SHIFTED),
    ColumnType("TIME WITH TIME ZONE", remedy=_SHIFTED),
    ColumnType("INTERVAL", remedy=_SHIFTED),
    ColumnType("BOOLEAN"),
    ColumnType("UUID", {"text": "short_text({})"}, remedy=_SHIFTED),
    ColumnType("JSON", remedy=_INSIDE),
    ColumnType("BSON", remedy=_INSIDE),
    ColumnType("VARIANT", remedy=_INSIDE),
    ColumnType("GEOMETRY", pattern="GEOMETRY.*", remedy="export latitude and longitude as two numbers"),
    ColumnType("NULL", pattern='"?NULL"?'),
    ColumnType("UNKNOWN", pattern=".*"),
)


@lru_cache(1024)
def type_named(name: str) -> ColumnType:
    """Returns the type that DuckDB, or the file if DuckDB reads it as another type, calls `name`."""
    return next(one for one in TYPES if re.fullmatch(one.pattern or re.escape(one.name), name, re.DOTALL))
