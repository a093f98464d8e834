"""The file that holds an area's entries: a row has one key or more, and the encoded entry.

pyarrow is imported by who writes or reads such a file as a whole. A worker does neither: it costs 70 ms at its start,
and 30 MiB.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any


def write_entries(path: Path, keys: Sequence[str], groups: Iterable[Sequence[tuple[Any, ...]]]) -> None:
    """Rows of `keys` and `entry`; each of `groups` becomes a row group, whose pages an index describes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [pa.field(key, pa.string(), nullable=False) for key in keys] + [pa.field("entry", pa.binary(), nullable=False)]
    )
    with pq.ParquetWriter(path, schema, compression="lz4", use_dictionary=False, write_page_index=True) as writer:
        for rows in groups:
            columns = zip(zip(*rows, strict=True), schema, strict=True)
            writer.write_table(pa.table([pa.array(values, field.type) for values, field in columns], schema=schema))


def read_entries(path: Path) -> Iterator[tuple[Any, ...]]:
    """Every row, in order."""
    import pyarrow.parquet as pq

    for batch in pq.ParquetFile(path).iter_batches():
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
