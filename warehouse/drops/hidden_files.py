"""Decides which names of a drop are ignored, and finds the rows behind them.

Like Spark, Hive and Trino, a drop ignores names that begin with `_` or `.`. It also ignores checksums (`*.crc`). So
that no row is left behind unnoticed, some of these names are treated in other ways:

- Folders of partitions are read: `_key=value`, as in Spark, and the folders that writers create for NULL (`__NULL__`).
- Folders of rows that a writer has not committed (`_temporary`, `.spark-staging-...`) are never read, because another
  attempt may have written the same rows. A writer removes the folder when it commits, so rows in it are an error.
- Elsewhere, a Parquet file with rows is an error, because only a person knows whether they belong to the drop.

Half a file, which a failed attempt leaves, has no readable rows. `_metadata` and `_common_metadata` only describe the
rows of other files. `_delta_log` and `.hoodie` mark managed tables, which `collection` refuses.
"""

import os
import re
from pathlib import Path

from warehouse.drops import parquet_integrity

_NULL_FOLDER = re.compile(r"(?i)_+(null|none|nan|unpartitioned|hive_default_partition)_+")
_UNCOMMITTED = re.compile(r"(?i)[._]+~?(te?mp|temporary|task_te?mp|magic|([a-z]+[-_])*staging)([^a-z].*)?")
_SUMMARIES = ("_metadata", "_common_metadata")


def is_ignored(name: str, *, folder: bool) -> bool:
    """Returns whether files and folders with this name are ignored."""
    if folder and (is_null_folder(name) or (name.startswith("_") and "=" in name)):
        return False
    return name.startswith(("_", ".")) or name.endswith(".crc")


def has_ignored_name(path: Path, label: Path) -> bool:
    """Returns whether the file or folder at `path`, or a folder above it in the drop, is ignored."""
    folders = any(is_ignored(part, folder=True) for part in label.parts[:-1])
    return folders or is_ignored(label.name, folder=is_folder(path))


def is_null_folder(name: str) -> bool:
    """Returns whether writers give this name to the folder of rows whose partition value is NULL."""
    return _NULL_FOLDER.fullmatch(name) is not None


def is_uncommitted(label: Path) -> bool:
    """Returns whether a path is, or is in, a folder of rows that a writer has not committed."""
    return any(map(_UNCOMMITTED.fullmatch, label.parts))


def files_with_rows(path: Path) -> list[Path]:
    """Returns the Parquet files with rows at or below an ignored path. Files that cannot be opened are left out."""
    if not is_folder(path):
        files = [path]
    elif path.is_symlink():  # it may lead anywhere
        files = []
    else:
        files = sorted(Path(folder) / name for folder, _, names in os.walk(path) for name in names)
    return [file for file in files if _has_rows(file)]


def is_folder(path: Path) -> bool:
    """Returns whether `path` is a folder. Without permission to see that, it is none."""
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises PermissionError


def _has_rows(path: Path) -> bool:
    # opening a pipe would wait for a writer; Path.is_file raises PermissionError
    is_file = path.name not in _SUMMARIES and os.path.isfile(path)  # noqa: PTH113
    return is_file and parquet_integrity.claims_of(path).rows > 0
