"""What the inbox's watchers have done, kept in the data folder over restarts. Every instance's /metrics shows it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
from pathlib import Path

import msgspec

from warehouse.files.atomic import clear_aside, open_lock, write_atomically
from warehouse.files.reading import read_struct

_FILE = "inbox.json"
_WATCHED = "inbox.watched"


class Failing(msgspec.Struct, frozen=True):
    """A claimed drop that could not be published for a reason unrelated to it."""

    stamp: str  # of its claim
    name: str
    tries: int
    problem: str  # of the last try


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the status file. It outlives watchers; the one that watches writes it."""

    published: int = 0  # drops since the data folder was made, also those that were current already
    refused: int = 0  # likewise
    waiting: int = 0  # drops in the inbox now, arriving and claimed ones included
    last_refusal: float | None = None  # Unix time
    counted: str | None = None  # stamp of the claim counted last: a crash before it is settled must not count it twice
    untold: tuple[str, str] | None = None  # a refused drop whose command has not ended: name, folder in quarantine
    failing: tuple[Failing, ...] = ()


@contextmanager
def watched(data: Path) -> Iterator[None]:
    """Marks this data folder as watched until the block or the process ends."""
    descriptor = open_lock(data / _WATCHED)
    try:
        flock(descriptor, LOCK_EX)  # waits at most while another process looks whether it is watched
        yield
    finally:
        os.close(descriptor)


def _is_watched(data: Path) -> bool:
    try:
        descriptor = os.open(data / _WATCHED, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        flock(descriptor, LOCK_SH | LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def shown_status(data: Path) -> Status:
    """As `read_status`, without `waiting` and `failing` if nobody watches: they are out of date then."""
    status = read_status(data)
    if (status.waiting or status.failing) and not _is_watched(data):
        return msgspec.structs.replace(status, waiting=0, failing=())
    return status


def read_status(data: Path) -> Status:
    """The stored status; an unreadable file counts as empty and is replaced by the next change."""
    try:
        return read_struct(data / _FILE, Status)
    except (OSError, ValueError):
        return Status()


class StatusFile:
    """The status file, for the one watcher that may write it, while it holds the lock.

    Counting raises OSError if it cannot be written, and changes nothing then. `waiting` and `failing` ignore such an
    error: a full disk must not keep the watcher from trying again.
    """

    def __init__(self, data: Path) -> None:
        self._path = data / _FILE
        clear_aside(self._path)
        self.now = read_status(data)

    def waiting(self, number: int) -> None:
        with suppress(OSError):
            self._change(waiting=number)

    def failing(self, failing: tuple[Failing, ...]) -> None:
        with suppress(OSError):
            self._change(failing=failing)

    def count_published(self, claim: str) -> None:
        self._change(published=self.now.published + self._is_new(claim), counted=claim, untold=None)

    def count_refused(self, claim: str, at: float, untold: tuple[str, str]) -> None:
        self._change(refused=self.now.refused + self._is_new(claim), counted=claim, last_refusal=at, untold=untold)

    def told(self) -> None:
        self._change(untold=None)

    def _is_new(self, claim: str) -> bool:
        return claim != self.now.counted

    def _change(self, **changes: object) -> None:
        changed = msgspec.structs.replace(self.now, **changes)
        if changed != self.now:
            write_atomically(self._path, msgspec.json.encode(changed))
            self.now = changed
