"""Which instances are alive on a data folder, and which release each of them serves.

Every instance has a record and holds its lock while it lives. Unlike a process id, a lock cannot outlive its process.
"""

import os
import time
from collections.abc import Callable, Iterable
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
from pathlib import Path

import msgspec

from warehouse.files.atomic import clear_aside, drop_spare, open_lock, replace_from_spare
from warehouse.files.reading import read_struct
from warehouse.releases.catalog import RELEASE_FORMAT
from warehouse.releases.pointer import Count
from warehouse.schema.errors import CatalogError
from warehouse.schema.progress import ProgressCallback


class InstanceRecord(msgspec.Struct, frozen=True):
    """The state of one instance. The instance rewrites it when it changes; publishers and commands read it."""

    instance: str  # a random id: process ids are the same in many containers
    pid: Count
    host: str
    operator_url: str  # as other hosts reach it
    releases: tuple[str | None, ...]  # by worker; None while a worker has none
    cache: str | None = None  # address of the shared cache, without credentials; None if an earlier version wrote it
    formats: Count = 1  # the highest format of a release that it reads

    @property
    def name(self) -> str:
        """For a person: "instance 3f9c20d1 on web-1"."""
        return f"instance {self.instance} on {self.host}"

    def serves(self, release: str) -> bool:
        """Returns whether all of its workers serve `release`."""
        return bool(self.releases) and all(served == release for served in self.releases)


class InstanceFile:
    """The record file of this instance and its lock. The supervisor owns it from start to exit."""

    def __init__(self, data: Path, instance: str) -> None:
        folder = data / "instances"
        folder.mkdir(parents=True, exist_ok=True)
        self.name = instance  # random
        self.record = folder / f"{instance}.json"
        self._lock = folder / f"{instance}.lock"
        self._descriptor = _locked(self._lock)

    def write(self, record: InstanceRecord) -> None:
        """Replaces the record. Works on a full disk, where a rollback needs it."""
        replace_from_spare(self.record, msgspec.json.encode(record))

    def close(self) -> None:
        """Removes the record and releases the lock."""
        drop_spare(self.record)
        self.record.unlink(missing_ok=True)
        self._lock.unlink(missing_ok=True)
        os.close(self._descriptor)


def live_instances(data: Path) -> list[InstanceRecord]:
    """Returns the records of live instances. Removes those of dead ones."""
    records = []
    for lock in sorted((data / "instances").glob("*.lock")):
        record = lock.with_suffix(".json")
        try:
            if not _cleared(lock, record):
                records.append(read_struct(record, InstanceRecord))
        except (OSError, ValueError):
            continue  # it has not written its first record yet, or is exiting
    return records


def check_readers(data: Path, *, leave_behind: bool) -> None:
    """Raises CatalogError if a live instance cannot read what is built now, unless it is to be left behind."""
    old = [record for record in live_instances(data) if record.formats < RELEASE_FORMAT]
    if old and not leave_behind:
        named = ", ".join(record.name for record in old)
        raise CatalogError(explain_unreadable(RELEASE_FORMAT, named))


def explain_unreadable(needed: int, named: str) -> str:
    """Returns the message that the instances `named` cannot read a release, with the remedy."""
    return (
        f"the release needs format {needed}, which {named} cannot read: upgrade them first, or publish with "
        "--leave-behind, so that they keep serving their current release"
    )


def wait_until_served(
    live: Callable[[], Iterable[InstanceRecord]],
    release: str,
    seconds: float,
    progress: ProgressCallback = lambda _: None,
    pause: float = 0.02,
) -> list[InstanceRecord]:
    """Waits until all `live` instances serve `release`. Returns those that do not after `seconds`.

    `pause`: seconds between two checks.
    """
    deadline = time.monotonic() + seconds
    while True:
        behind = [record for record in live() if record.releases and not record.serves(release)]
        if not behind or time.monotonic() > deadline:
            return behind
        progress(f"waiting for {len(behind)} instance(s)")
        time.sleep(pause)


def _locked(lock: Path) -> int:
    """Returns a descriptor that holds the lock on the file now called `lock`."""
    while True:
        descriptor = open_lock(lock)
        flock(descriptor, LOCK_EX)  # waits only while another process checks whether we are alive
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)  # between these steps, another process mistook it for a dead instance's and removed it


def _cleared(lock: Path, record: Path) -> bool:
    """Returns whether the instance is dead. If so, removes its files."""
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
        record.unlink(missing_ok=True)  # while we hold the lock, so that no other process can
        lock.unlink(missing_ok=True)
        return True
    finally:
        os.close(descriptor)
