"""The disk under an embedded server that writes an append-only file (Decision 9).

Space is reserved behind the end of the file (fallocate(2)), and no other file can use it. So a full disk does not end
the server, and urgent changes can still be written.
"""

import ctypes
import errno
import os
from pathlib import Path

FILES = "appendonlydir"  # as the server names it
# Enough for some thousand changes of keys, and for the usage of thousands of keys until the server rejects writes.
RESERVED_BYTES = 4 << 20
# A disk is full below this free space, and no longer full above RESERVED_BYTES.
_FULL_BYTES = RESERVED_BYTES // 4
_KEEP_SIZE = 1  # FALLOC_FL_KEEP_SIZE of linux/falloc.h
_UNSUPPORTED = (errno.EOPNOTSUPP, errno.ENOSYS)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def disk_error(folder: Path, *, was_full: bool) -> OSError | None:
    """Reserves space for the append-only file in `folder`; returns why it cannot grow, or None if it can. May hang.

    `was_full`: the last call found a full disk.
    """
    try:
        newest = newest_increment(folder / FILES)
        if newest is not None:
            _reserve_behind(newest)
        disk = os.statvfs(folder)
    except FileNotFoundError:
        return None  # no file yet
    except OSError as error:
        return error
    if disk.f_bavail * disk.f_frsize < (RESERVED_BYTES if was_full else _FULL_BYTES):
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
    return None


def is_full(error: OSError | None) -> bool:
    return error is not None and error.errno in _FULL


def newest_increment(files: Path) -> Path | None:
    """Returns the append-only file that a server writes to: appendonly.aof.N.incr.aof with the highest N."""
    found = [(int(path.name.split(".")[-3]), path) for path in files.glob("*.[0-9]*.incr.aof")]
    return max(found)[1] if found else None


def _reserve_behind(path: Path) -> None:
    """Reserves space. Raises OSError if there is none. Does nothing if the file system cannot reserve space."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        end = os.fstat(descriptor).st_size
        libc = ctypes.CDLL(None, use_errno=True)
        offset = ctypes.c_int64
        if libc.fallocate(descriptor, _KEEP_SIZE, offset(end), offset(RESERVED_BYTES)):
            number = ctypes.get_errno()
            if number not in _UNSUPPORTED:
                raise OSError(number, os.strerror(number), str(path))
    finally:
        os.close(descriptor)
