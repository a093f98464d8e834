"""Rows become a Parquet file with the columns and types that were said."""

import io
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warehouse.schema import tabular
from warehouse.schema.tabular import ParquetRows, ValueType

COLUMNS: dict[str, ValueType] = {"name": "text", "day": "date", "times": "integer"}


def test_rows_come_back_with_their_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also over more than one group of rows; the sink stays open for whoever opened it."""
    monkeypatch.setattr(tabular, "_ROWS_IN_A_GROUP", 2)
    sink = io.BytesIO()
    rows = ParquetRows(sink, COLUMNS)
    for number in range(5):
        rows.write((f"n{number}", date(2026, 11, number + 1), number))
    rows.close()
    assert not sink.closed
    found = pq.read_table(pa.BufferReader(sink.getvalue()))
    assert found.schema.types == [pa.string(), pa.date32(), pa.int64()]
    assert found.to_pylist() == [
        {"name": f"n{number}", "day": date(2026, 11, number + 1), "times": number} for number in range(5)
    ]


def test_no_rows_are_a_file_with_columns() -> None:
    """An empty month is no failure."""
    sink = io.BytesIO()
    ParquetRows(sink, COLUMNS).close()
    assert pq.read_table(pa.BufferReader(sink.getvalue())).column_names == list(COLUMNS)
