"""What the inbox's watcher has done, kept in the data folder over restarts, for every instance's /metrics."""

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
    """A claimed drop that could not be published for a reason of ours, `problem`, in so many `tries`."""

    stamp: str
    name: str
    tries: int
    problem: str


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """`counted` is the claim that was counted last, so that a crash before it is settled does not count it twice.

    `untold` is a refused drop whose command has not run to its end: its name, and its folder in quarantine.
    """

    published: int = 0
    refused: int = 0
    waiting: int = 0
    last_refusal: float | None = None
    counted: str | None = None
    untold: tuple[str, str] | None = None
    failing: tuple[Failing, ...] = ()


@contextmanager
def watched(data: Path) -> Iterator[None]:
    """Says until the block ends, or the process, that somebody watches an inbox for this data folder."""
    descriptor = open_lock(data / _WATCHED)
    try:
        flock(descriptor, LOCK_EX)  # at most for the moment in which somebody looks
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
    """As `read_status`. What waits and what fails is news of the moment: without a watcher it is none."""
    status = read_status(data)
    if (status.waiting or status.failing) and not _is_watched(data):
        return msgspec.structs.replace(status, waiting=0, failing=())
    return status


def read_status(data: Path) -> Status:
    """What there is; a file that cannot be read counts for nothing, and is replaced by what happens next."""
    try:
        return read_struct(data / _FILE, Status)
    except (OSError, ValueError):
        return Status()


class StatusFile:
    """The file, for the one watcher that may write it. Counting may raise OSError; nothing is changed then. What is of
    the moment is written if it can be: a full disk must keep nobody from trying again.
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
