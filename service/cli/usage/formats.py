"""Usage as files for billing (CSV, JSON, Parquet), written row by row, and as a table of totals for people."""

import csv
import io
import shutil
import sys
from typing import BinaryIO, Literal

import msgspec

from service.quota.report import Day
from service.reports.text_table import HarmlessConsole, text_table

Format = Literal["table", "csv", "json", "parquet"]

# Columns of a table in a pipe: enough for numbers of twelve digits beside long names.
_WIDE = 240
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_COUNTS = ("answered", "answered_empty", "not_modified", "not_found", "rejected", "limited", "billable")


class BillingRow(msgspec.Struct, frozen=True, kw_only=True):
    """Requests of one key in one area on one UTC day. The fields are the columns of every format, in order."""

    key_id: str
    partner: str  # empty if the key's record is gone
    label: str  # empty if the key's record is gone
    area: str
    date: Day
    answered: int  # 200 with figures, and 206
    answered_empty: int  # 200 without figures
    not_modified: int  # 304
    not_found: int  # 404
    rejected: int  # other 4xx, except 429
    billable: int  # answered, answered_empty and not_modified
    limited: int  # 429
    plan: str  # of the key on that day; empty without one. If it changed, each in order: basic → pro


def _as_text(value: object) -> object:
    """Puts an apostrophe before any text that a spreadsheet would run as a formula (OWASP: CSV Injection)."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


class _Csv:
    def __init__(self, sink: BinaryIO) -> None:
        self._text = io.TextIOWrapper(sink, encoding="utf-8", newline="")
        self._csv = csv.writer(self._text, lineterminator="\n")
        self._csv.writerow(BillingRow.__struct_fields__)

    def write(self, row: BillingRow) -> None:
        self._csv.writerow(_as_text(value) for value in msgspec.structs.astuple(row))

    def close(self) -> None:
        self._text.detach()  # flushes, and leaves the sink open


class _Json:
    """Writes one array, with a row on each line."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._between = b"[\n"

    def write(self, row: BillingRow) -> None:
        self._sink.write(self._between + msgspec.json.encode(row))
        self._between = b",\n"

    def close(self) -> None:
        self._sink.write(b"[]\n" if self._between == b"[\n" else b"\n]\n")


class _Parquet:
    def __init__(self, sink: BinaryIO) -> None:
        from warehouse.schema.tabular import ParquetRows, ValueType  # imports pyarrow, which takes long

        kinds: dict[type, ValueType] = {str: "text", int: "integer", Day: "date"}
        fields = msgspec.structs.fields(BillingRow)
        self._rows = ParquetRows(sink, {field.name: kinds[field.type] for field in fields})

    def write(self, row: BillingRow) -> None:
        self._rows.write(msgspec.structs.astuple(row))

    def close(self) -> None:
        self._rows.close()


class _Totals:
    """Writes totals by partner, key and plan, and over all."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._sums: dict[tuple[str, str, str, str], list[int]] = {}

    def write(self, row: BillingRow) -> None:
        sums = self._sums.setdefault((row.partner, row.key_id, row.label, row.plan), [0] * len(_COUNTS))
        for at, name in enumerate(_COUNTS):
            sums[at] += getattr(row, name)

    def close(self) -> None:
        names = tuple(name.replace("_", " ") for name in _COUNTS)
        shown = text_table("partner", "key id", "label", "plan", *names, numeric=names)
        for column in shown.columns:  # only names may fold: half an id or number would mislead
            column.no_wrap = column.header not in ("partner", "label", "plan")
        for texts, sums in self._sums.items():
            shown.add_row(*texts, *(f"{n:,}" for n in sums))
        totals = [sum(column) for column in zip(*self._sums.values(), strict=True)] or [0] * len(_COUNTS)
        shown.add_row("total", "", "", "", *(f"{n:,}" for n in totals), style="bold")
        text = io.StringIO()
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDE
        HarmlessConsole(file=text, width=width).print(shown)
        self._sink.write(text.getvalue().encode())


Writer = _Csv | _Json | _Parquet | _Totals
_WRITERS: dict[Format, type[Writer]] = {"csv": _Csv, "json": _Json, "parquet": _Parquet, "table": _Totals}


def writer(kind: Format, sink: BinaryIO) -> Writer:
    """Returns the writer of one report. The report is complete only after its `close`."""
    return _WRITERS[kind](sink)
