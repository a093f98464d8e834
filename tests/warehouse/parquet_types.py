"""One column for every type that a Parquet file can declare, as pyarrow, DuckDB or another writer writes it."""

from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from tests.warehouse.footers import change_footer
from warehouse.schema.tables import ColumnKind

Becomes = Mapping[ColumnKind, Any]

# A number, and what it becomes.
SEVEN: Becomes = {"zip": "00007", "fips": "00007", "text": "7", "integer": 7, "real": 7.0}
SEVEN_OF_FRACTIONS: Becomes = {kind: value for kind, value in SEVEN.items() if kind != "text"}
# A value for each kind of column as text, and what it becomes.
WORDS: Becomes = {
    "zip": "00501",
    "fips": "01025",
    "state": "AL",
    "text": "Doña Ana",
    "integer": "7",
    "real": "-118.2437",
    "date": "2024-01-02",
}
DAY = date(2024, 1, 2)
OF_WORDS: Becomes = {**WORDS, "integer": 7, "real": -118.2437, "date": DAY}
OF_DAY: Becomes = {"date": DAY}
_MOMENT = datetime(2024, 1, 2, 23, 30)  # noqa: DTZ001 - as drops have them
_DAYS, _MILLISECONDS = 19_724, 19_724 * 86_400_000  # since 1970
_UUID = UUID("9b57a620-badb-4e6d-bb06-413a57464f0a")
_POINT = bytes.fromhex("0101000000000000000000f03f0000000000000040")

# Annotations of a column, in bytes of Thrift. The old notation is a number, the new one a union.
_UTF8, _ENUM, _DECIMAL, _DATE, _TIME_MS, _TIME_US, _MS, _US, _UINT8, _INT8, _JSON = 0, 4, 5, 6, 7, 8, 9, 10, 11, 15, 19
_UNITS = {"ms": b"\x1c\x00", "us": b"\x2c\x00", "ns": b"\x3c\x00"}


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """One way to write a column."""

    name: str
    held: str  # its type in the table of types
    kind: pa.DataType | str  # or SQL of DuckDB
    value: Any = None  # or a value for each kind of our columns
    becomes: Becomes = {}  # others are refused
    annotation: bytes = b""
    options: Mapping[str, Any] = {}


def old(number: int, *numbers: int) -> bytes:
    """The old notation; for decimals with scale and precision."""
    return b"\x25" + bytes([number * 2]) + b"".join(b"\x15" + zigzag(one) for one in numbers)


def new(field: int, body: bytes = b"") -> bytes:
    """The new notation without the old one."""
    head = bytes([field << 4 | 0xC]) if field < 16 else b"\x0c" + bytes([field * 2])
    return b"\x6c" + head + body + b"\x00\x00"


def zigzag(number: int) -> bytes:
    return bytes([number * 2]) if number < 64 else bytes([number * 2 & 0x7F | 0x80, number * 2 >> 7])


def _new_decimal(precision: int, scale: int) -> bytes:
    return new(5, b"\x15" + zigzag(scale) + b"\x15" + zigzag(precision))


def _of_unit(field: int, unit: str, *, utc: bool) -> bytes:
    return new(field, (b"\x11" if utc else b"\x12") + b"\x1c" + _UNITS[unit] + b"\x00")


def _of_width(bits: int, *, signed: bool) -> bytes:
    return new(10, b"\x13" + bytes([bits]) + (b"\x11" if signed else b"\x12"))


def _numbers() -> Iterator[Form]:
    def seven(name: str, held: str, kind: pa.DataType, value: Any = 7, **more: Any) -> Form:
        return Form(name=name, held=held, kind=kind, value=value, **{"becomes": SEVEN, **more})

    for bits in (8, 16, 32, 64):
        held = {8: "TINYINT", 16: "SMALLINT", 32: "INTEGER", 64: "BIGINT"}[bits]
        plain, at = (pa.int64() if bits == 64 else pa.int32()), {8: 0, 16: 1, 32: 2, 64: 3}[bits]
        yield seven(f"int{bits}", held, getattr(pa, f"int{bits}")())
        yield seven(f"uint{bits}", f"U{held}", getattr(pa, f"uint{bits}")())
        yield seven(f"old INT_{bits}", held, plain, annotation=old(_INT8 + at))
        yield seven(f"old UINT_{bits}", f"U{held}", plain, annotation=old(_UINT8 + at))
        whole = "BIGINT" if bits == 64 else "INTEGER"
        yield seven(f"new INT({bits})", whole, plain, annotation=_of_width(bits, signed=True))
        yield seven(f"new UINT({bits})", f"U{whole}", plain, annotation=_of_width(bits, signed=False))
    fractions: dict[str, Any] = {"becomes": SEVEN_OF_FRACTIONS}
    yield seven("half", "FLOAT16", pa.float16(), 7.0, becomes={})
    yield seven("float", "FLOAT", pa.float32(), 7.0, **fractions)
    yield seven("double", "DOUBLE", pa.float64(), 7.0, **fractions)
    for digits, scale in ((1, 0), (9, 0), (18, 0), (38, 0), (39, 0), (76, 0), (9, 2), (38, 20), (39, 1), (76, 38)):
        of_wide = pa.decimal256(digits, scale) if digits > 38 else pa.decimal128(digits, scale)
        yield seven(f"decimal({digits},{scale})", "DECIMAL", of_wide, Decimal(7), **({} if scale == 0 else fractions))
    for digits in (9, 18):
        options = {"store_decimal_as_integer": True}
        yield seven(f"decimal({digits},2) of integers", "DECIMAL", pa.decimal128(digits, 2), Decimal(7),
                    options=options, **fractions)  # fmt: skip
    for name, kind, value in (
        ("INT32", pa.int32(), 700),
        ("INT64", pa.int64(), 700),
        ("BYTE_ARRAY", pa.binary(), (700).to_bytes(2)),
        ("FIXED", pa.binary(4), (700).to_bytes(4)),
    ):
        yield seven(f"old DECIMAL {name}", "DECIMAL", kind, value, annotation=old(_DECIMAL, 2, 9), **fractions)
        yield seven(f"new DECIMAL {name}", "DECIMAL", kind, value, annotation=_new_decimal(9, 2), **fractions)
    yield seven("new DECIMAL(76,2)", "DECIMAL", pa.binary(32), (700).to_bytes(32), annotation=_new_decimal(76, 2),
                **fractions)  # fmt: skip
    yield seven("new DECIMAL(9,0)", "DECIMAL", pa.int32(), annotation=_new_decimal(9, 0))
    yield Form(name="HUGEINT of DuckDB", held="DOUBLE", kind="7::HUGEINT", **fractions)  # as DuckDB exports it
    yield Form(name="boolean", held="BOOLEAN", kind=pa.bool_(), value=True)


def _texts() -> Iterator[Form]:
    for name, kind in (
        ("text", pa.string()),
        ("large text", pa.large_string()),
        ("text view", pa.string_view()),
        ("dictionary", pa.dictionary(pa.int32(), pa.string())),
    ):
        yield Form(name=name, held="VARCHAR", kind=kind, value=WORDS, becomes=OF_WORDS)
    encoded = {kind: word.encode() for kind, word in WORDS.items()}
    for name, held, annotation in (
        ("bytes", "BLOB", b""),
        ("old UTF8", "VARCHAR", old(_UTF8)),
        ("new STRING", "BLOB", new(1)),
        ("old ENUM", "VARCHAR", old(_ENUM)),
        ("new ENUM", "BLOB", new(4)),
        ("a type of the future", "BLOB", new(19)),
    ):
        yield Form(name=name, held=held, kind=pa.binary(), value=encoded, becomes=OF_WORDS, annotation=annotation)
    yield Form(name="bytes of one length", held="BLOB", kind="fixed", value=encoded, becomes=OF_WORDS)
    yield Form(name="ENUM of DuckDB", held="VARCHAR", kind="'AL'::ENUM('AL')", becomes={"state": "AL", "text": "AL"})
    yield Form(name="UUID", held="UUID", kind=pa.uuid(), value=_UUID.bytes, becomes={"text": str(_UUID)})
    yield Form(name="old JSON", held="JSON", kind=pa.binary(), value=b'"AL"', annotation=old(_JSON))
    yield Form(name="new JSON", held="JSON", kind=pa.binary(), value=b'"AL"', annotation=new(12))
    yield Form(name="new BSON", held="BSON", kind=pa.binary(), value=b"\x05\x00\x00\x00\x00", annotation=new(13))


def _times() -> Iterator[Form]:
    for name, kind in (("date32", pa.date32()), ("date64", pa.date64())):
        yield Form(name=name, held="DATE", kind=kind, value=DAY, becomes=OF_DAY)
    for name, annotation in (("old DATE", old(_DATE)), ("new DATE", new(6))):
        yield Form(name=name, held="DATE", kind=pa.int32(), value=_DAYS, becomes=OF_DAY, annotation=annotation)
    for unit in ("s", "ms", "us", "ns"):
        names = {"ns": ("TIMESTAMP_NS", "TIMESTAMPTZ_NS")}.get(unit, ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE"))
        for held, zone in zip(names, (None, "America/Chicago"), strict=True):
            kind = pa.timestamp(unit, zone)
            yield Form(
                name=f"timestamp {unit} of {'a zone' if zone else 'no zone'}",
                held=held,
                kind=kind,
                value=_MOMENT,
                becomes=OF_DAY,
            )
    yield Form(
        name="INT96",
        held="TIMESTAMP",
        kind=pa.timestamp("us"),
        value=_MOMENT,
        becomes=OF_DAY,
        options={"use_deprecated_int96_timestamps": True},
    )
    for name, factor, annotation in (
        ("old TIMESTAMP_MILLIS", 1, old(_MS)),
        ("old TIMESTAMP_MICROS", 1000, old(_US)),
        ("new TIMESTAMP(ms)", 1, _of_unit(8, "ms", utc=False)),
        ("new TIMESTAMP(us)", 1000, _of_unit(8, "us", utc=False)),
    ):
        value = _MILLISECONDS * factor
        yield Form(name=name, held="TIMESTAMP", kind=pa.int64(), value=value, becomes=OF_DAY, annotation=annotation)
    for unit in ("ms", "us", "ns"):
        kind = pa.int32() if unit == "ms" else pa.int64()
        held = "TIME_NS" if unit == "ns" else "TIME"
        yield Form(name=f"TIME({unit})", held=held, kind=kind, value=7, annotation=_of_unit(7, unit, utc=False))
        zoned = "TIME WITH TIME ZONE"
        yield Form(name=f"TIME({unit}, UTC)", held=zoned, kind=kind, value=7, annotation=_of_unit(7, unit, utc=True))
    yield Form(name="time", held="TIME", kind=pa.time32("s"), value=time(7))
    yield Form(name="old TIME_MILLIS", held="TIME", kind=pa.int32(), value=7, annotation=old(_TIME_MS))
    yield Form(name="old TIME_MICROS", held="TIME", kind=pa.int64(), value=7, annotation=old(_TIME_US))
    yield Form(name="interval", held="INTERVAL", kind="INTERVAL 1 DAY")


def _others() -> Iterator[Form]:
    for name, held, kind, value in (
        ("list", "LIST", pa.list_(pa.int64()), [7]),
        ("list of structs", "LIST", pa.list_(pa.struct({"a": pa.int64()})), [{"a": 7}]),
        ("list of one length", "LIST", pa.list_(pa.int64(), 1), [7]),
        ("list of text", "LIST", pa.list_(pa.string()), ["AL"]),
        ("struct", "STRUCT", pa.struct({"a": pa.int64(), "b": pa.list_(pa.int64())}), {"a": 7, "b": [7]}),
        ("map", "MAP", pa.map_(pa.string(), pa.int64()), [("a", 7)]),
    ):
        yield Form(name=name, held=held, kind=kind, value=value)
    yield Form(name="union of DuckDB", held="STRUCT", kind="union_value(a := 7)")
    yield Form(name="variant", held="VARIANT", kind="7::VARIANT")
    yield Form(name="geometry of DuckDB", held="GEOMETRY", kind="'POINT(1 2)'::GEOMETRY")
    yield Form(name="GEOMETRY", held="GEOMETRY", kind=pa.binary(), value=_POINT, annotation=new(17))
    yield Form(name="GEOGRAPHY", held="GEOMETRY", kind=pa.binary(), value=_POINT, annotation=new(18))
    yield Form(name="null", held="NULL", kind=pa.null())
    yield Form(name="null of DuckDB", held="NULL", kind="NULL")


FORMS = {form.name: form for form in (*_numbers(), *_texts(), *_times(), *_others())}


def write_form(form: Form, path: Path, kinds: Mapping[str, ColumnKind], rest: Mapping[str, str]) -> None:
    """Writes one row: columns of this form, by the kind that each is of, and others of text."""
    if isinstance(form.kind, str) and form.kind != "fixed":
        columns = [
            *(f"{form.kind} AS {name}" for name in kinds),
            *(f"'{word}' AS {name}" for name, word in rest.items()),
        ]
        duckdb.sql(f"COPY (SELECT {', '.join(columns)}) TO '{path}' (FORMAT parquet)")
        return
    arrays = {name: _array(form, kind) for name, kind in kinds.items()}
    table = pa.table({**arrays, **{name: [word] for name, word in rest.items()}})
    pq.write_table(table, path, store_schema=not form.annotation, **form.options)
    for name in kinds if form.annotation else ():
        annotate(path, name, form.annotation)


def _array(form: Form, kind: ColumnKind) -> pa.Array:
    value = (
        form.value[kind] if isinstance(form.value, Mapping) and not isinstance(form.kind, pa.StructType) else form.value
    )
    held = pa.binary(len(value)) if form.kind == "fixed" else form.kind
    if isinstance(held, pa.ExtensionType):
        return pa.ExtensionArray.from_storage(held, pa.array([value], held.storage_type))
    return pa.array([value], held)


def annotate(path: Path, column: str, annotation: bytes) -> None:
    """Gives a column without a type of its own this one."""
    name = b"\x18" + bytes([len(column)]) + column.encode()
    change_footer(path, lambda footer: footer.replace(name + b"\x00", name + annotation + b"\x00"))
