"""Reads small files in the data folder safely, even if something else has taken their place."""

import os
import stat
from pathlib import Path
from typing import TypeVar

import msgspec

from config.decoders import decoder_of

# The usage spool of a million keys is smaller than this.
_MAX_BYTES = 1 << 30

T = TypeVar("T")


def read_regular(path: Path) -> bytes:
    """Returns the bytes of a regular file.

    Raises OSError, also for a FIFO or a device, on which a plain read could block.
    """
    with open(path, "rb", opener=_open_without_waiting) as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(None, "not a regular file", str(path))
        if status.st_size > _MAX_BYTES:
            raise OSError(None, "too large", str(path))
        return stream.read()


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def read_struct(path: Path, of: type[T]) -> T:
    """Returns the contents of a JSON file.

    Raises OSError as `read_regular` does, ValueError if they are not an `of`.
    """
    data = read_regular(path)
    try:
        return decoder_of(of).decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
