"""Disk space: what a drop may take of it, and whose fault it is if that is not enough."""

import errno
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import duckdb
import msgspec

from warehouse.files.full_disk import says_full

# For the key store, usage, the pointer and records, which may be on the same disk.
_RESERVE_BYTES = 256 << 20
_MAX_SPILL_BYTES = 8 << 30
# What reading and building an ordinary drop takes is a small part of this; one made to hurt takes any multiple.
_BASE_ALLOWANCE_BYTES = 64 << 20
_ALLOWANCE_PER_DROP_BYTE = 20


class DiskBudget(msgspec.Struct, frozen=True):
    """How much disk one drop may use, in bytes. Made for each step (reading, building) of one drop."""

    free: int
    spill_limit: int  # DuckDB may spill this much to disk
    allowance: int  # what a well-behaved drop of this size may need

    def blames_drop(self, used: int) -> bool:
        """Whether a drop that took `used` bytes and needed more is at fault, and not a disk that others have filled."""
        return used >= self.allowance

    def excess(self, error: Exception, folder: Path) -> str | None:
        """What the drop that is read or built in `folder` needed too much of; None if `error` is no fault of its own.

        It is where the disk had less than a drop of this size may need, whatever is in it.
        """
        if _is_spill(error):
            needed = f"needed more than {format_bytes(self.spill_limit)} of disk; {format_bytes(self.free)} were free"
            return needed if self.blames_drop(self.spill_limit) else None
        if isinstance(error, duckdb.OutOfMemoryException):
            return "needed more memory than a drop may have"
        taken = bytes_used(folder) if says_full(error) else 0
        if taken and self.blames_drop(taken):
            return f"took {format_bytes(taken)} of disk and needed more; {format_bytes(self.free)} were free"
        return None

    def lack(self) -> str:
        """Why a drop could not be read or built, where that is no fault of its own."""
        full = os.strerror(errno.ENOSPC)
        free, needed = format_bytes(self.free), format_bytes(self.allowance)
        return f"{full}: {free} are free, and a drop of this size may need {needed}"


def disk_budget_for(files: Iterable[Path], folder: Path) -> DiskBudget:
    """The room in `folder` for a drop of `files`. Raises OSError."""
    disk = shutil.disk_usage(folder)
    spill_limit = min(_MAX_SPILL_BYTES, disk.free - min(_RESERVE_BYTES, disk.total // 16))
    allowance = _BASE_ALLOWANCE_BYTES + _ALLOWANCE_PER_DROP_BYTE * sum(map(_on_disk, files))
    return DiskBudget(disk.free, max(0, spill_limit), allowance)


def bytes_used(folder: Path) -> int:
    """Bytes that the files below `folder` take; those that go meanwhile take none."""
    return sum(map(_on_disk, folder.rglob("*")))


def format_bytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"


def _on_disk(path: Path) -> int:
    try:
        return path.stat().st_blocks * 512  # of a file with holes, what is there
    except OSError:
        return 0


def _is_spill(error: Exception) -> bool:
    return "max_temp_directory_size" in str(error)
