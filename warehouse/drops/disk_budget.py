"""Limits the disk and memory of a drop, and decides whether the drop is to blame if they run out."""

import errno
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import duckdb
import msgspec

from config.resources import processors
from config.text import format_bytes
from warehouse import sql
from warehouse.files.remedies import is_disk_full
from warehouse.sql import connections

# Stays free for the key store, usage, the pointer and records, which may be on the same disk.
_RESERVE_BYTES = 256 << 20
_MAX_SPILL_BYTES = 8 << 30
_MEMORY_BYTES = 512 << 20  # of the DuckDB that reads, compares and builds a drop
# A well-behaved drop needs a small part of this to be read and built. A malicious one uses any multiple.
_BASE_ALLOWANCE_BYTES = 64 << 20
_ALLOWANCE_PER_DROP_BYTE = 20


class DiskBudget(msgspec.Struct, frozen=True):
    """How much disk one drop may use, in bytes. Created for each step (reading, building) of one drop."""

    free: int
    spill_limit: int  # the most that DuckDB may spill to disk
    allowance: int  # the most that a well-behaved drop of this size needs

    def excess(self, error: Exception, folder: Path) -> str | None:
        """Returns which resource the drop in `folder` exhausted. None if the drop is not to blame.

        It is not to blame if the disk had less space than a drop of this size may need.
        """
        if "max_temp_directory_size" in str(error):
            needed = f"needed more than {format_bytes(self.spill_limit)} of disk; {format_bytes(self.free)} were free"
            return needed if self.spill_limit >= self.allowance else None
        if isinstance(error, duckdb.OutOfMemoryException):
            return "needed more memory than a drop may use"
        used = sum(map(_on_disk, folder.rglob("*"))) if is_disk_full(error) else 0
        if used >= self.allowance:
            return f"used {format_bytes(used)} of disk and needed more; {format_bytes(self.free)} were free"
        return None

    def lack(self) -> str:
        """Returns why a drop that is not to blame could not be read or built."""
        full = os.strerror(errno.ENOSPC)
        free, needed = format_bytes(self.free), format_bytes(self.allowance)
        return f"{full}: {free} are free, and a drop of this size may need {needed}"


def disk_budget_for(files: Iterable[Path], folder: Path) -> DiskBudget:
    """Returns the budget for a drop of `files` that is read or built in `folder`. Raises OSError."""
    disk = shutil.disk_usage(folder)
    spill_limit = min(_MAX_SPILL_BYTES, disk.free - min(_RESERVE_BYTES, disk.total // 16))
    allowance = _BASE_ALLOWANCE_BYTES + _ALLOWANCE_PER_DROP_BYTE * sum(map(_on_disk, files))
    return DiskBudget(disk.free, max(0, spill_limit), allowance)


def _on_disk(path: Path) -> int:
    try:
        return path.stat().st_blocks * 512  # a sparse file counts only its blocks on disk
    except OSError:  # it vanished meanwhile
        return 0


def connect_within(budget: DiskBudget, folder: Path) -> duckdb.DuckDBPyConnection:
    """Returns a new in-memory database that spills into `folder`, within `budget`."""
    connection = connections.connect()
    connection.execute(
        sql.statement(
            "limit_publisher",
            memory=str(_MEMORY_BYTES),
            spill=str(budget.spill_limit),
            threads=str(processors()),
            folder=sql.quoted(str(folder)),
        )
    )
    return connection
