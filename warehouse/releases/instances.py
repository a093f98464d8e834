"""Which instances are alive on a data folder, and which release each of them serves.

Every instance keeps a record and holds a lock on it while it lives; the lock, unlike a process id, cannot outlive it.
"""

import os
import time
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
from pathlib import Path

import msgspec

from warehouse.files.atomic import clear_aside, drop_spare, open_lock, replace_from_spare
from warehouse.files.reading import read_struct
from warehouse.schema.progress import ProgressCallback


class InstanceRecord(msgspec.Struct, frozen=True):
    """`releases`: what each of its workers serves, None while a worker has none. `cache`: the address of its shared
    cache, without credentials; unknown of instances of earlier versions.
    """

    instance: str
    pid: int
    host: str
    operator_url: str
    releases: tuple[str | None, ...]
    cache: str | None = None

    def serves(self, release: str) -> bool:
        return bool(self.releases) and all(served == release for served in self.releases)


class InstanceFile:
    """The record of this instance."""

    def __init__(self, data: Path, instance: str) -> None:
        folder = data / "instances"
        folder.mkdir(parents=True, exist_ok=True)
        self.record = folder / f"{instance}.json"
        self._lock = folder / f"{instance}.lock"
        self._descriptor = _locked(self._lock)

    def write(self, record: InstanceRecord) -> None:
        """Also on a full disk, or a rollback would wait for an instance that has long followed."""
        replace_from_spare(self.record, msgspec.json.encode(record))

    def close(self) -> None:
        drop_spare(self.record)
        self.record.unlink(missing_ok=True)
        self._lock.unlink(missing_ok=True)
        os.close(self._descriptor)


def live_instances(data: Path) -> list[InstanceRecord]:
    """Records of the instances that are alive; those of dead ones are removed."""
    records = []
    for lock in sorted((data / "instances").glob("*.lock")):
        record = lock.with_suffix(".json")
        try:
            if not _cleared(lock, record):
                records.append(read_struct(record, InstanceRecord))
        except (OSError, ValueError):
            continue  # it has not written its first record yet, or is just leaving
    return records


def wait_until_served(
    data: Path, release: str, seconds: float, progress: ProgressCallback = lambda _: None
) -> list[InstanceRecord]:
    """Waits until every live instance serves `release`; returns those that do not after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        behind = [record for record in live_instances(data) if record.releases and not record.serves(release)]
        if not behind or time.monotonic() > deadline:
            return behind
        progress(f"waiting for {len(behind)} instance(s)")
        time.sleep(0.02)


def _locked(lock: Path) -> int:
    """A descriptor that holds `lock`, on the file that has this name."""
    while True:
        descriptor = open_lock(lock)
        flock(descriptor, LOCK_EX)  # at most for the moment in which somebody looks whether we are alive
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)  # between our two steps it was taken for a dead instance's, and removed


def _cleared(lock: Path, record: Path) -> bool:
    """Whether the instance is dead; then its files are removed."""
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        flock(descriptor, LOCK_SH | LOCK_NB)
    except BlockingIOError:
        return False
    else:
        drop_spare(record)
        clear_aside(record)
        record.unlink(missing_ok=True)  # while the lock is ours, so that nobody can take it meanwhile
        lock.unlink(missing_ok=True)
        return True
    finally:
        os.close(descriptor)
