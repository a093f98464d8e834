"""Counts that a worker could not store yet: a file in the data folder, which another worker stores if this one dies.

Counts keep their worker's id and numbers, so that they count once whichever workers store them. A live
worker holds a lock beside its file (``.<worker id>.lock``), which the kernel releases when it dies. Until then, only
that worker replaces the file.
"""

import logging
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from errno import EWOULDBLOCK
from pathlib import Path

import msgspec

from service.quota.batch import UsageBatch
from service.quota.usage_store import SEQUENCE_SECONDS
from warehouse.files.atomic import clear_aside, exclusive, write_atomically
from warehouse.files.reading import read_struct

log = logging.getLogger("forecast.usage")

FOLDER = "usage-spool"
# An older file is not stored: the store may have dropped the record of added batches. Four days are left for batches
# that were old when they were spooled.
OLDEST = timedelta(seconds=SEQUENCE_SECONDS) - timedelta(days=4)
# Age at which a lock without a file, of a killed worker, is removed. A younger one may be about to be used.
_LOCK_KEPT_SECONDS = 86_400.0


class Spooled(msgspec.Struct, frozen=True):
    """The contents of a file. `keys`: the batches of each key, in the order of their numbers."""

    worker_id: str
    written_at: datetime
    keys: dict[str, tuple[UsageBatch, ...]]


class Spool:
    """The spool as one worker uses it, from its start to its end. Unusable files are set aside, never deleted."""

    def __init__(self, data: Path) -> None:
        self._folder = data / FOLDER
        self._own = ExitStack()
        self._holds = False

    def write(self, worker_id: str, keys: dict[str, tuple[UsageBatch, ...]]) -> Path:
        """Replaces and locks the file of this worker; it is on disk when this returns. Raises OSError."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self._holds:
            self._holds = self._own.enter_context(exclusive(self._lock(worker_id)))
            if not self._holds:
                self._own.close()
                raise BlockingIOError(EWOULDBLOCK, "another process holds it")
        path = self._folder / f"{worker_id}.json"
        write_atomically(path, msgspec.json.encode(Spooled(worker_id, datetime.now(UTC), keys)), mode=0o600)
        return path

    def clear(self, worker_id: str) -> None:
        """Removes the file of a worker: the store has all of its batches. Raises OSError."""
        (self._folder / f"{worker_id}.json").unlink(missing_ok=True)

    def leave(self, worker_id: str) -> None:
        """Releases the file of this worker, which writes no more, to other processes."""
        if self._holds:
            self._lock(worker_id).unlink(missing_ok=True)
        self._own.close()
        self._holds = False

    def files(self) -> list[Path]:
        """Returns all spool files, including those of live workers."""
        for lock in self._folder.glob(".*.lock"):
            self._tidy(lock)
        return sorted(self._folder.glob("*.json"))

    def claim(self, path: Path) -> ExitStack | None:
        """Takes the file until the result is closed; None if its worker still runs, or another process has it."""
        claimed, lock = ExitStack(), self._lock(path.stem)
        if not claimed.enter_context(exclusive(lock)):
            claimed.close()
            return None
        claimed.callback(lock.unlink, missing_ok=True)
        claimed.callback(clear_aside, path)  # its worker may have been killed while it wrote
        return claimed

    def read(self, path: Path) -> Spooled | None:
        """Returns the contents of a file that is held; None if it is gone or unusable."""
        try:
            spooled = read_struct(path, Spooled)
        except FileNotFoundError:
            return None
        except OSError as error:
            log.error("%s cannot be read: %s", path, error.strerror)
            return None
        except ValueError as error:
            self._set_aside(path, "damaged", str(error))
            return None
        if datetime.now(UTC) - spooled.written_at > OLDEST:
            self._set_aside(path, "too-old", f"written on {spooled.written_at:%Y-%m-%d}")
            return None
        return spooled

    def _lock(self, worker_id: str) -> Path:
        return self._folder / f".{worker_id}.lock"

    def _tidy(self, lock: Path) -> None:
        worker_id = lock.name[1 : -len(".lock")]
        try:
            if time.time() - lock.stat().st_mtime < _LOCK_KEPT_SECONDS:
                return
            with exclusive(lock) as held:
                path = self._folder / f"{worker_id}.json"
                if held and not path.exists():
                    clear_aside(path)
                    lock.unlink(missing_ok=True)
        except OSError as error:
            log.debug("%s is left: %s", lock, error.strerror)

    def _set_aside(self, path: Path, why: str, detail: str) -> None:
        aside = path.with_name(f"{path.name}.{why}")
        log.error("usage in %s is not counted (%s): set aside as %s", path, detail, aside.name)
        try:
            path.rename(aside)
        except OSError as error:
            log.error("%s cannot be set aside: %s", path, error.strerror)
