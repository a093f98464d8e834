"""Files that are there whole or not at all, also after a crash."""

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

_SPARE_BYTES = 4096  # more than any pointer or record has; one block


def write_atomically(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Replaces `path` by `data` in one step: written aside, flushed to disk, renamed."""
    with replacing(path, mode) as stream:
        stream.write(data)


@contextmanager
def replacing(path: Path, mode: int = 0o644) -> Iterator[BinaryIO]:
    """A stream whose contents replace `path` in one step when the block ends; an exception leaves all as it was.

    A link at `path` is replaced, never followed. Raises OSError, also where `path` is no regular file: a device would
    be replaced as well.
    """
    if path.exists() and not path.is_file():
        raise OSError(EINVAL, "it is no regular file", str(path))
    with _aside(path, mode) as (aside, stream):
        yield stream
        _flush(stream)
        aside.replace(path)
    sync(path.parent)


def create(path: Path, data: bytes, mode: int = 0o644) -> bool:
    """Creates `path`, whole from the start; False if there is one, which stays. Raises OSError."""
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
    """A new file in the folder of `path`, under a name that nobody can guess; removed, unless it was renamed."""
    aside = path.with_name(f".{path.name}.{token_hex(8)}.new")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield aside, stream
    finally:
        aside.unlink(missing_ok=True)


def _flush(stream: BinaryIO) -> None:
    stream.flush()
    os.fsync(stream.fileno())


def open_lock(path: Path) -> int:
    """A descriptor of the lock file `path`, which is created where it is missing; a link is not followed."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def replace_from_spare(path: Path, data: bytes) -> None:
    """Like `write_atomically`, but in blocks set aside before, so it works on a full disk. Sets aside the next ones."""
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
    """Sets blocks aside for the next `replace_from_spare`; where there are none, that one needs free ones."""
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
    with suppress(OSError):
        _spare_of(path).unlink(missing_ok=True)


def _spare_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.spare")


def clear_aside(path: Path) -> None:
    """Removes what a process that died while it replaced `path` left; only for whoever alone may replace it."""
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
    for path in sorted(folder.rglob("*"), reverse=True):
        sync(path)
    sync(folder)


def checksum(path: Path) -> str:
    """BLAKE2b, 128 bits, of a file's bytes, as hex."""
    digest = blake2b(digest_size=16)
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@contextmanager
def exclusive(path: Path) -> Iterator[bool]:
    """Whether the lock file `path` could be taken at once; held until the block ends, or the process."""
    descriptor = open_lock(path)
    try:
        try:
            flock(descriptor, LOCK_EX | LOCK_NB)
            held = True
        except BlockingIOError:
            held = False
        yield held
    finally:
        os.close(descriptor)
