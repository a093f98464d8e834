"""A disk that is full: how errors say so, and what makes room."""

import errno
import os

# EFBIG is the reader's own limit on the size of a file.
_FULL = tuple(os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
_REMEDY = "`forecast extracts retire --keep N` removes old releases, and works on a full disk"


def says_full(error: Exception | str) -> bool:
    return any(full in str(error) for full in _FULL)


def with_remedy(message: str) -> str:
    """`message`, and what makes room if it says that a disk is full."""
    return f"{message}; {_REMEDY}" if says_full(message) else message
