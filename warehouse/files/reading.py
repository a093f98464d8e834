"""Reads small files of the data folder, whatever lies in their place."""

import os
import stat
from pathlib import Path
from typing import TypeVar

import msgspec

# A spool of a million keys stays below this.
_MAX_BYTES = 1 << 30

T = TypeVar("T")


def read_regular(path: Path) -> bytes:
    """The bytes of an ordinary file. Raises OSError, also for a FIFO or a device, which others would wait for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(None, "not an ordinary file", str(path))
        if status.st_size > _MAX_BYTES:
            raise OSError(None, "too large", str(path))
        return stream.read()


def read_struct(path: Path, of: type[T]) -> T:
    """What a file of JSON holds. Raises OSError as `read_regular`; ValueError if it holds something else."""
    data = read_regular(path)
    try:
        return msgspec.json.decode(data, type=of)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
