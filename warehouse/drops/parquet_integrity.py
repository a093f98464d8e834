"""Whether a Parquet file is intact: its three row counts must agree, and so must the checksums of its pages.

DuckDB checks neither. If the writer left out checksums, a flipped bit in a figure cannot be noticed.
"""

from collections.abc import Collection
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from config.first_line import first_line

# Rows read at a time: enough to be fast, few enough for a table of any width.
_BATCH_ROWS = 8192


def claimed_rows(path: Path) -> int | None:
    """The rows that a file claims: the total in its footer or the sum of its row groups, whichever is larger.

    None if its footer cannot be read. Nothing else is read.
    """
    try:
        footer = pq.read_metadata(path)
        groups = sum(footer.row_group(number).num_rows for number in range(footer.num_row_groups))
        return int(max(footer.num_rows, groups))
    except (OSError, pa.ArrowException, UnicodeDecodeError):
        return None


def find_damage(path: Path, columns: Collection[str]) -> str | None:
    """What is wrong inside the file, or None. Checks only the pages of `columns`."""
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            return _miscounted(file.metadata, columns) or _unlike(file, columns)
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        return first_line(error)


def _miscounted(footer: pq.FileMetaData, columns: Collection[str]) -> str | None:
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    rows = sum(group.num_rows for group in groups)
    if rows != footer.num_rows:
        return f"its footer says {footer.num_rows:,} rows, its row groups say {rows:,}"
    flat = [
        number
        for number in range(footer.num_columns)
        if footer.schema.column(number).path in columns and not footer.schema.column(number).max_repetition_level
    ]
    for group in groups:
        for number in flat:
            chunk = group.column(number)
            if chunk.num_values != group.num_rows:
                name = chunk.path_in_schema
                return f"column {name} says {chunk.num_values:,} values in a row group of {group.num_rows:,} rows"
    return None


def _unlike(file: pq.ParquetFile, columns: Collection[str]) -> str | None:
    """Reads every page; the library raises an error if a checksum is wrong."""
    rows = sum(batch.num_rows for batch in file.iter_batches(_BATCH_ROWS, columns=list(columns), use_threads=False))
    expected = file.metadata.num_rows if columns else rows
    return None if rows == expected else f"its footer says {expected:,} rows, its pages hold {rows:,}"
