"""Copies files with columns that DuckDB would misread, so that it reads them as the file declares them.

DuckDB reads a DECIMAL of more than 38 digits as DOUBLE, which rounds, and ignores some types of writers that leave out
the older notation. pyarrow reads all of them exactly.
"""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warehouse.drops import parquet_integrity
from warehouse.drops.recognition import Extract

_BATCH_ROWS = 8192
_MOST_DIGITS = 38  # of a DECIMAL in DuckDB


@contextmanager
def exact_copies(extracts: Iterable[Extract], folder: Path) -> Iterator[tuple[Extract, ...]]:
    """Yields the extracts, with copies of those that DuckDB would misread. The copies are in `folder` until the end.

    Damaged files are not copied: `stage` makes the finding.

    Raises:
        OSError: if a copy cannot be written.
    """
    with tempfile.TemporaryDirectory(dir=folder) as inside:
        yield tuple(
            _copied(extract, Path(inside) / f"{number}.parquet") if extract.misread else extract
            for number, extract in enumerate(extracts)
        )


def _copied(extract: Extract, path: Path) -> Extract:
    own = extract.read
    try:
        if parquet_integrity.find_damage(extract.file.path, own) is not None:
            return extract
    except MemoryError:
        return extract
    with pq.ParquetFile(extract.file.path) as file:
        schema = pa.schema([(name, _written(file.schema_arrow.field(name).type)) for name in own])
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            for batch in file.iter_batches(_BATCH_ROWS, columns=own, use_threads=False):
                columns = [_cast(batch.column(name), schema.field(name).type) for name in own]
                writer.write_batch(pa.record_batch(columns, schema=schema))
    return msgspec.structs.replace(extract, file=msgspec.structs.replace(extract.file, path=path))


def _written(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_decimal(kind) and kind.precision > _MOST_DIGITS else kind


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if values.type == kind:
        return values
    # pyarrow writes a zero of many decimals as 0E-38
    return pc.replace_substring_regex(values.cast(kind), r"^0E-[0-9]+$", "0")
