"""Remedies for errors that concern the machine, not the file that they name."""

import errno
import os
from pathlib import Path

# The messages of these errors. EFBIG comes from the limit that the reader puts on the size of a file.
_FULL = tuple(os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
_RETIRE = "`forecast extracts retire --keep N` removes old releases, and works on a full disk"
_OF_PROCESS = {
    errno.ENFILE: "raise the machine's limit of open files (sysctl fs.file-max)",
    # after ENFILE: each message is searched for, and that of EMFILE is the beginning of that of ENFILE
    errno.EMFILE: "raise this process's limit of open files (ulimit -n, LimitNOFILE)",
    errno.ENOMEM: "free memory, or raise this process's limit",
}
_REMEDIES = {
    **dict.fromkeys(_FULL, _RETIRE),
    **{os.strerror(number): remedy for number, remedy in _OF_PROCESS.items()},
    os.strerror(errno.EROFS): "mount the file system for writing",
    os.strerror(errno.EIO): "check the disk (dmesg)",
}


def is_disk_full(error: Exception | str) -> bool:
    """Returns whether `error` says that a disk is full."""
    return any(full in str(error) for full in _FULL)


def is_of_process(error: OSError) -> bool:
    """Returns whether the error concerns the whole process, not the file or socket that it names."""
    return error.errno in _OF_PROCESS


def remedy_for(error: Exception | str) -> str | None:
    """Returns what to do about the machine; None if `error` is not about it."""
    return next((remedy for cause, remedy in _REMEDIES.items() if cause in str(error)), None)


def with_remedy(message: str, otherwise: str | None = None) -> str:
    """Returns `message` and the remedy for the machine that it calls for, or else `otherwise`."""
    remedy = remedy_for(message) or otherwise
    return f"{message}; {remedy}" if remedy else message


def unwritable(data: Path, error: OSError) -> str:
    """Returns that the data folder cannot be written: where, why, and the remedy."""
    where = f"{data} ({error.filename})" if error.filename not in (None, str(data)) else str(data)
    rights = "give this user the right to write there" if isinstance(error, PermissionError) else None
    return with_remedy(f"cannot write the data folder {where}: {error.strerror or error}", rights)
