"""Files that are there whole or not at all, also after a crash."""

import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EINVAL
from fcntl import LOCK_EX, LOCK_NB, flock
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO


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
