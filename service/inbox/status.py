"""The status of the inbox's watchers, stored in the data folder across restarts. Each instance's /metrics shows it."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
from pathlib import Path

import msgspec

from warehouse.files.atomic import clear_aside, open_lock, write_atomically
from warehouse.files.reading import read_struct

_FILE = "inbox.json"
_LOCK = "inbox.json.lock"
_WATCHED = "inbox.watched"


class Failing(msgspec.Struct, frozen=True):
    """A claimed drop that could not be published for a reason unrelated to it."""

    stamp: str  # of its claim
    name: str
    tries: int
    problem: str  # of the last try


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the status file. It outlives watchers."""

    published: int = 0  # drops since the data folder was created, including those that were already current
    refused: int = 0  # likewise
    waiting: int = 0  # drops in the inbox now, arriving and claimed ones included
    last_refusal: float | None = None  # Unix time
    counted: str | None = None  # stamp of the last counted claim, which must not count twice after a crash
    untold: tuple[str, str] | None = None  # name and folder of a refused or held drop whose command has not ended
    failing: tuple[Failing, ...] = ()
    held: int = 0  # drops that wait for a decision now
    held_since: float | None = None  # Unix time since when the oldest of them has been held
    ignored: int = 0  # files and folders in the inbox now that cannot be drops

    def held_age(self) -> float:
        """Returns the seconds for which the oldest held drop has waited; 0 if none is held."""
        return max(0.0, time.time() - self.held_since) if self.held_since is not None else 0.0


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds the lock at `path` until the block or the process ends. Waits while another process has it."""
    descriptor = open_lock(path)
    try:
        flock(descriptor, LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def watched(data: Path) -> AbstractContextManager[None]:
    """Marks this data folder as watched. Waits only while another process checks whether it is watched."""
    return _locked(data / _WATCHED)


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


def read_fresh_status(data: Path) -> Status:
    """Returns the stored status. Without a watcher, omits `waiting`, `ignored` and `failing`, which are stale then."""
    status = read_status(data)
    if (status.waiting or status.ignored or status.failing) and not _is_watched(data):
        return msgspec.structs.replace(status, waiting=0, ignored=0, failing=())
    return status


def read_status(data: Path) -> Status:
    """Returns the stored status; an unreadable file counts as empty and is replaced by the next change."""
    try:
        return read_struct(data / _FILE, Status)
    except (OSError, ValueError):
        return Status()


class StatusFile:
    """The status file. The watcher and each command that decides on a held drop write it, one at a time by a lock.

    Methods raise OSError if it cannot be written, and then change no figure. `set_waiting`, `set_failing` and
    `set_held` ignore this error: a full disk must not keep the watcher from a retry.
    """

    def __init__(self, data: Path) -> None:
        self._data = data
        with self._alone() as now:
            clear_aside(data / _FILE)
            self.now = now

    def set_waiting(self, *, waiting: int, ignored: int) -> None:
        with suppress(OSError):
            self._change(waiting=waiting, ignored=ignored)

    def set_failing(self, failing: tuple[Failing, ...]) -> None:
        with suppress(OSError):
            self._change(failing=failing)

    def set_held(self, since: Sequence[datetime]) -> None:
        """Sets the figures of held drops; `since` has the time of each since when it has been held."""
        with suppress(OSError):
            self._change(held=len(since), held_since=min(since).timestamp() if since else None)

    def count_published(self, claim: str) -> None:
        with self._alone() as now:
            self._write(now, published=now.published + (claim != now.counted), counted=claim, untold=None)

    def count_refused(self, claim: str, at: float, untold: tuple[str, str]) -> None:
        with self._alone() as now:
            more = now.refused + (claim != now.counted)
            self._write(now, refused=more, counted=claim, last_refusal=at, untold=untold)

    def count_approved(self) -> None:
        with self._alone() as now:
            self._write(now, published=now.published + 1)

    def count_discarded(self, at: float) -> None:
        with self._alone() as now:
            self._write(now, refused=now.refused + 1, last_refusal=at)

    def note_command(self, untold: tuple[str, str] | None) -> None:
        """Notes the held drop for which the command has to run; None once it has ended. Counts no drop: a decision
        does."""
        self._change(untold=untold)

    def _change(self, **changes: object) -> None:
        with self._alone() as now:
            self._write(now, **changes)

    def _write(self, now: Status, **changes: object) -> None:
        changed = msgspec.structs.replace(now, **changes)
        if changed != now:
            write_atomically(self._data / _FILE, msgspec.json.encode(changed))
        self.now = changed

    @contextmanager
    def _alone(self) -> Iterator[Status]:
        """Yields the stored status while other processes cannot change it."""
        with _locked(self._data / _LOCK):
            yield read_status(self._data)
