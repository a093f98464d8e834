"""Writes rows to a Parquet file as they arrive. Memory use does not grow with the number of rows."""

from collections.abc import Mapping, Sequence
from typing import BinaryIO, Literal

import pyarrow as pa
import pyarrow.parquet as pq

ValueType = Literal["text", "integer", "date"]

_TYPES: dict[ValueType, pa.DataType] = {"text": pa.string(), "integer": pa.int64(), "date": pa.date32()}
_ROWS_IN_A_GROUP = 50_000


class ParquetRows:
    """A Parquet file while it is written to `sink`. The caller owns both: `close` completes the file, not the sink.

    `columns` gives the names, in order, with their types.
    """

    def __init__(self, sink: BinaryIO, columns: Mapping[str, ValueType]) -> None:
        self._schema = pa.schema([pa.field(name, _TYPES[kind], nullable=False) for name, kind in columns.items()])
        self._writer = pq.ParquetWriter(sink, self._schema, compression="zstd")
        self._waiting: list[Sequence[object]] = []

    def write(self, row: Sequence[object]) -> None:
        """Adds a row: one value for each column."""
        self._waiting.append(row)
        if len(self._waiting) >= _ROWS_IN_A_GROUP:
            self._write_group()

    def close(self) -> None:
        """Writes the remaining rows and the footer."""
        if self._waiting:
            self._write_group()
        self._writer.close()

    def _write_group(self) -> None:
        columns = zip(*self._waiting, strict=True)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, self._schema, strict=True)]
        self._writer.write_table(pa.table(arrays, schema=self._schema))
        self._waiting = []
