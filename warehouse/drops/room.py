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
_RESERVE = 256 << 20
_MOST = 8 << 30
# What reading and building an ordinary drop takes is a small part of this; one made to hurt takes any multiple.
_ORDINARY = 64 << 20
_ORDINARY_RATIO = 20


class Room(msgspec.Struct, frozen=True):
    """Bytes: `free` on the disk, `most` that a drop may spill there, `ordinary` what a drop of its size may need."""

    free: int
    most: int
    ordinary: int

    def blames_drop(self, used: int) -> bool:
        """Whether a drop that took `used` bytes and needed more is at fault, and not a disk that others have filled."""
        return used >= self.ordinary

    def excess(self, error: Exception, folder: Path) -> str | None:
        """What the drop that is read or built in `folder` needed too much of; None if `error` is no fault of its own.

        It is where the disk had less than a drop of this size may need, whatever is in it.
        """
        if _is_spill(error):
            needed = f"needed more than {shown(self.most)} of disk; {shown(self.free)} were free"
            return needed if self.blames_drop(self.most) else None
        if isinstance(error, duckdb.OutOfMemoryException):
            return "needed more memory than a drop may have"
        taken = used(folder) if says_full(error) else 0
        if taken and self.blames_drop(taken):
            return f"took {shown(taken)} of disk and needed more; {shown(self.free)} were free"
        return None

    def lack(self) -> str:
        """Why a drop could not be read or built, where that is no fault of its own."""
        full = os.strerror(errno.ENOSPC)
        return f"{full}: {shown(self.free)} are free, and a drop of this size may need {shown(self.ordinary)}"


def room_for(files: Iterable[Path], folder: Path) -> Room:
    """The room in `folder` for a drop of `files`. Raises OSError."""
    disk = shutil.disk_usage(folder)
    most = min(_MOST, disk.free - min(_RESERVE, disk.total // 16))
    return Room(disk.free, max(0, most), _ORDINARY + _ORDINARY_RATIO * sum(map(_on_disk, files)))


def used(folder: Path) -> int:
    """Bytes that the files below `folder` take; those that go meanwhile take none."""
    return sum(map(_on_disk, folder.rglob("*")))


def shown(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"


def _on_disk(path: Path) -> int:
    try:
        return path.stat().st_blocks * 512  # of a file with holes, what is there
    except OSError:
        return 0


def _is_spill(error: Exception) -> bool:
    return "max_temp_directory_size" in str(error)
