"""Checks that a Parquet file is intact and its footer within limits.

The three row counts must agree, and the checksums of pages must be right. DuckDB checks neither. If the writer left out
checksums, a flipped bit in a figure cannot be detected. The limits bound the time: DuckDB takes a minute for 50,000
columns.
"""

import os
from collections.abc import Collection
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from config.text import first_line
from warehouse.drops.file_faults import find_fault

# Rows read at a time: enough to be fast, few enough for a table of any width.
_BATCH_ROWS = 8192

# National exports have a footer of some MB, a hundred columns, and row groups of up to half a gigabyte.
_MOST_FOOTER_BYTES = 64 << 20
_MOST_COLUMNS = 20_000
_MOST_ROW_GROUPS = 50_000
_MOST_GROUP_BYTES = 4 << 30
_MOST_BYTES = 32 << 30
_NESTED = "too deeply nested"  # in the library's message


class Claims(msgspec.Struct, frozen=True):
    """The claims of a file's footer. The rest of the file was not read."""

    rows: int = 0  # the total, or the sum of the row groups, whichever is larger
    excess: str | None = None  # the limit that it exceeds, as the end of a message
    rule: str = "oversized-file"  # the rule that this breaks
    remedy: str | None = None  # if it is not the rule's


def claims_of(path: Path) -> Claims:
    """Returns the claims of the file at `path`; none if its footer cannot be read: `recognise` makes the finding."""
    try:
        size = _footer_bytes(path)
        if _MOST_FOOTER_BYTES < size < path.stat().st_size:
            return Claims(excess=f"has a footer of {size:,} bytes; the limit is {_MOST_FOOTER_BYTES:,}")
        fault = find_fault(path)
        if fault is not None:
            return Claims(excess=fault.what, rule="unreadable-file", remedy=fault.remedy)
        footer = pq.read_metadata(path)
        for many, what, most in (
            (footer.num_columns, "columns", _MOST_COLUMNS),
            (footer.num_row_groups, "row groups", _MOST_ROW_GROUPS),
        ):
            if many > most:
                return Claims(excess=f"has {many:,} {what}; the limit is {most:,}")
        groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
        unpacked = [max(0, group.total_byte_size) for group in groups]
        rows = int(max(footer.num_rows, sum(group.num_rows for group in groups)))
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        nested = _NESTED in str(error)
        return Claims(excess="has columns that are nested too deeply" if nested else None, rule="unreadable-file")
    for claimed, what, most in (
        (max(unpacked, default=0), "has a row group that unpacks", _MOST_GROUP_BYTES),
        (sum(unpacked), "unpacks", _MOST_BYTES),
    ):
        if claimed > most:
            return Claims(rows, f"{what} to {claimed:,} bytes; the limit is {most:,}")
    return Claims(rows)


def _footer_bytes(path: Path) -> int:
    with path.open("rb") as stream:
        stream.seek(-8, os.SEEK_END)
        return int.from_bytes(stream.read(4), "little")


def find_damage(path: Path, columns: Collection[str]) -> str | None:
    """Returns the damage inside the file, or None. Checks only the pages of `columns`.

    Raises:
        MemoryError: if a page of the file does not fit into memory.
    """
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            return _find_wrong_count(file.metadata, columns) or _find_damaged_page(file, columns)
    except MemoryError:
        raise
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        return first_line(error)


def _find_wrong_count(footer: pq.FileMetaData, columns: Collection[str]) -> str | None:
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


def _find_damaged_page(file: pq.ParquetFile, columns: Collection[str]) -> str | None:
    """Reads every page and compares the number of rows. The library raises an error if a checksum is wrong."""
    rows = sum(batch.num_rows for batch in file.iter_batches(_BATCH_ROWS, columns=list(columns), use_threads=False))
    expected = file.metadata.num_rows if columns else rows
    return None if rows == expected else f"its footer says {expected:,} rows, its pages hold {rows:,}"
