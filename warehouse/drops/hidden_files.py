"""Decides which names of a drop are ignored, and finds the rows behind them.

Like Spark, Hive and Trino, a drop ignores names that begin with `_` or `.`. It also ignores checksums (`*.crc`). So
that no row is left behind unnoticed, some of these names are treated in other ways:

- Folders of partitions are read: `_key=value`, as in Spark, and the folders that writers create for NULL (`__NULL__`).
- Folders of rows that a writer has not committed (`_temporary`, `.spark-staging-...`) are never read, because another
  attempt may have written the same rows. A writer removes the folder when it commits, so a complete file in it is an
  error. Half a file is the rest of a failed attempt, and is ignored.
- Elsewhere, a Parquet file with rows, even half a file, is an error: only a person knows whether the drop needs them.

The summaries `_metadata` and `_common_metadata` only describe the rows of other files. `_delta_log` and `.hoodie` mark
managed tables, which `collection` refuses. `_SUCCESS` and other files that are not Parquet hold no rows.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from warehouse.drops import parquet_integrity

MAGIC = b"PAR1"

_NULL_FOLDER = re.compile(r"(?i)_+(null|none|nan|unpartitioned|hive_default_partition)_+")
_UNCOMMITTED = re.compile(r"(?i)[._]+~?(te?mp|temporary|task_te?mp|magic|([a-z]+[-_])*staging)([^a-z].*)?")
_SUMMARIES = ("_metadata", "_common_metadata")


def is_ignored(name: str, *, folder: bool) -> bool:
    """Returns whether files and folders with this name are ignored."""
    if folder and (_NULL_FOLDER.fullmatch(name) or (name.startswith("_") and "=" in name)):
        return False
    return name.startswith(("_", ".")) or name.endswith(".crc")


def is_uncommitted(label: Path) -> bool:
    """Returns whether a path is, or is in, a folder of rows that a writer has not committed."""
    return any(map(_UNCOMMITTED.fullmatch, label.parts))


def files_with_rows(path: Path, *, half_files: bool) -> list[Path]:
    """Returns the Parquet files with rows at or below an ignored path. `half_files`: also those without an end."""
    return [file for file in _files(path) if _has_rows(file, half_files=half_files)]


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
    elif not path.is_symlink():  # it may lead anywhere
        for folder, folders, names in os.walk(path):
            folders.sort()
            yield from (Path(folder) / name for name in sorted(names))


def _has_rows(path: Path, *, half_files: bool) -> bool:
    """Returns whether a file is Parquet with rows. A file that cannot be opened counts as one without."""
    try:
        if path.name in _SUMMARIES or not path.is_file():  # opening a pipe would wait for a writer
            return False
        with path.open("rb") as stream:
            if stream.read(len(MAGIC)) != MAGIC:
                return False
            stream.seek(-len(MAGIC), os.SEEK_END)
            is_half = stream.tell() < len(MAGIC) or stream.read() != MAGIC
    except OSError:
        return False
    claimed = parquet_integrity.claims_of(path)
    return half_files if is_half else bool(claimed.rows or claimed.excess)
