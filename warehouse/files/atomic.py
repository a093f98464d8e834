"""Files that are complete or absent, even after a crash; and lock files."""

import glob
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EINVAL
from fcntl import LOCK_EX, LOCK_NB, flock
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from warehouse.files.remedies import remedy_for

_SPARE_BYTES = 4096  # one block; larger than any pointer or record


def write_atomically(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Replaces `path` with `data` atomically: writes a temporary file, flushes it to disk, renames it."""
    with replacing(path, mode) as stream:
        stream.write(data)


@contextmanager
def replacing(path: Path, mode: int = 0o644) -> Iterator[BinaryIO]:
    """Yields a stream whose contents replace `path` atomically when the block ends.

    An exception leaves `path` unchanged.

    A link at `path` is replaced, not followed. Raises OSError, also if `path` exists and is not a regular file, because
    a device would be replaced too.
    """
    if path.exists() and not path.is_file():
        raise OSError(EINVAL, "not a regular file", str(path))
    with _aside(path, mode) as (aside, stream):
        yield stream
        _flush(stream)
        aside.replace(path)
    sync(path.parent)


def create(path: Path, data: bytes, mode: int = 0o644) -> bool:
    """Creates `path` atomically. Returns False if it exists, and leaves it unchanged. Raises OSError."""
    with _aside(path, mode) as (aside, stream):
        stream.write(data)
        _flush(stream)
        try:
            os.link(aside, path)
        except FileExistsError:
            return False
    sync(path.parent)
    return True


@contextmanager
def _aside(path: Path, mode: int) -> Iterator[tuple[Path, BinaryIO]]:
    """Yields a temporary file beside `path`, with an unguessable name. It is removed unless it was renamed."""
    aside = path.with_name(f".{path.name}.{token_hex(8)}.new")
    try:
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    except OSError as error:  # callers know only `path`, not the temporary file
        raise OSError(error.errno, error.strerror, str(path)) from None
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield aside, stream
    except OSError as error:
        if error.filename is None and remedy_for(error):  # of a disk, while writing
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise
    finally:
        aside.unlink(missing_ok=True)


def _flush(stream: BinaryIO) -> None:
    stream.flush()
    os.fsync(stream.fileno())


def open_lock(path: Path) -> int:
    """Returns a descriptor of the lock file `path`, created if it is missing. A link is not followed."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def take_lock(path: Path) -> int | None:
    """Returns a descriptor that locks the file `path` until it is closed; None if another process has the lock."""
    descriptor = open_lock(path)
    try:
        flock(descriptor, LOCK_EX | LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            return None
        raise
    return descriptor


def replace_from_spare(path: Path, data: bytes) -> None:
    """Replaces like `write_atomically`, but in blocks reserved earlier, so on a full disk too.

    Reserves the next ones.
    """
    spare = _spare_of(path)
    try:
        descriptor = os.open(spare, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        write_atomically(path, data)
    else:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            stream.truncate()
            os.fsync(stream.fileno())
        spare.replace(path)
        sync(path.parent)
    keep_spare(path)


def keep_spare(path: Path) -> None:
    """Reserves blocks for the next `replace_from_spare`. If none are free, that call will need free ones."""
    spare = _spare_of(path)
    with suppress(OSError):
        status = spare.lstat()
        if stat.S_ISREG(status.st_mode) and status.st_size == _SPARE_BYTES <= status.st_blocks * 512:
            return
    try:
        spare.unlink(missing_ok=True)
        descriptor = os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            os.posix_fallocate(descriptor, 0, _SPARE_BYTES)
        finally:
            os.close(descriptor)
    except OSError:
        drop_spare(path)


def drop_spare(path: Path) -> None:
    """Frees the blocks that `keep_spare` reserved."""
    with suppress(OSError):
        _spare_of(path).unlink(missing_ok=True)


def _spare_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.spare")


def clear_aside(path: Path) -> None:
    """Removes temporary files of a process that died while replacing `path`. The caller must be its only writer."""
    for aside in path.parent.glob(f".{glob.escape(path.name)}.*.new"):
        aside.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Flushes one file, or the entries of one folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Flushes a folder and everything in it to disk."""
    for path in sorted(folder.rglob("*"), reverse=True):
        sync(path)
    sync(folder)


def checksum(path: Path) -> str:
    """Returns the 128-bit BLAKE2b digest of a file, in hex."""
    digest = blake2b(digest_size=16)
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@contextmanager
def exclusive(path: Path) -> Iterator[bool]:
    """Tries to lock the file `path`, without waiting. Yields whether it did; holds the lock until the block ends."""
    descriptor = take_lock(path)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)
