"""A full disk: how to recognise the error, and what frees space."""

import errno
import os

# The messages of these errors. EFBIG comes from the limit that the reader puts on the size of a file.
_FULL = tuple(os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
_REMEDY = "`forecast extracts retire --keep N` removes old releases, and works on a full disk"


def says_full(error: Exception | str) -> bool:
    """Whether `error` says that a disk is full."""
    return any(full in str(error) for full in _FULL)


def with_remedy(message: str) -> str:
    """`message`; if it says that a disk is full, what frees space is added."""
    return f"{message}; {_REMEDY}" if says_full(message) else message
