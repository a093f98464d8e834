"""The folders of the inbox. A drop moves through them by renames alone.

<inbox>/<name>                        a drop, arriving or complete: a folder, or one Parquet file
<inbox>/.claimed/<time>/<name>        a drop that is being published
<inbox>/published/<name>-<time>/      <name> and its reports
<inbox>/held/<name>-<time>/           <name> and its reports, until a person decides (decisions.py)
<inbox>/quarantine/<name>-<time>/     <name> and its reports

Each step is one rename, so after a crash a drop is whole and in exactly one place. No drop is deleted or replaced.
"""

import math
import os
import unicodedata
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from service.inbox.arrivals import Arrivals
from warehouse.files.atomic import clear_aside, exclusive, sync, write_atomically
from warehouse.files.reading import read_struct
from warehouse.files.remedies import with_remedy
from warehouse.schema.errors import InboxError

SettledPlace = Literal["published", "held", "quarantine"]
PLACES: tuple[SettledPlace, ...] = ("published", "held", "quarantine")
REPORTS = ("report.json", "report.txt")

_PARQUET = (".parquet", ".parq", ".pq")
_HIDDEN = ("_", ".")
_LONGEST_NAME = 200  # bytes; file systems allow 255, and the time has to fit as well


class _Named(msgspec.Struct):
    """The part of report.json that each look reads."""

    drop: str


def unusable(inbox: Path, error: OSError) -> InboxError:
    return InboxError(f"the inbox {inbox} cannot be used: {error.filename}: {error.strerror or error}")


class Claim(msgspec.Struct, frozen=True):
    """A drop that was moved to .claimed. It stays there until it is settled, even after a restart."""

    stamp: str  # time of the claim, which orders drops and distinguishes two with the same name
    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def delivered(self) -> datetime:
        """When the drop was claimed."""
        try:
            return datetime.strptime(self.stamp, "%Y%m%dT%H%M%S.%f%z")
        except ValueError:  # a person created this folder
            return _now()


class Look(msgspec.Struct, frozen=True):
    """The names of drops in the inbox at one look, oldest first."""

    complete: tuple[str, ...]
    arriving: tuple[str, ...]
    foreign: dict[str, str]  # entries that cannot be drops, with the reasons


def _now() -> datetime:
    return datetime.now(UTC)


class InboxFolder:
    """One inbox folder, for its watcher's lifetime. The other arguments are as in `Arrivals`; `by_age`: with the file
    system's clock.
    """

    def __init__(
        self,
        folder: Path,
        *,
        marker: str,
        quiet: float,
        settle: float = 0.0,
        by_age: bool = False,
        now: Callable[[], datetime] = _now,
    ) -> None:
        self.folder = folder
        self._claimed = folder / ".claimed"
        self._lock = self._claimed / ".lock"
        self._now = now
        self._marker = marker
        self._marker_only = math.isinf(quiet)
        self._arrivals = Arrivals(
            marker=marker, quiet=quiet, settle=settle, file_clock=self._time_of_files if by_age else None
        )

    def prepare(self) -> None:
        """Creates the folders in the inbox, but not the inbox itself, which may be an unmounted volume.

        Raises:
            InboxError: if the inbox cannot be used.
        """
        try:
            if not self.folder.is_dir():
                what = "is not a folder" if self.folder.exists() else "does not exist"
                raise InboxError(f"the inbox {self.folder} {what}")
            if not os.access(self.folder, os.R_OK | os.W_OK | os.X_OK):
                raise InboxError(f"the inbox {self.folder} cannot be read and written by this user")
            for folder in (self._claimed, *(self.folder / place for place in PLACES)):
                folder.mkdir(exist_ok=True)
                if folder.stat().st_dev != self.folder.stat().st_dev:
                    raise InboxError(f"{folder} is on another disk than the inbox: drops are moved by renames")
            if self._claimed.is_symlink():
                raise InboxError(f"{self._claimed} is a link: remove it")
        except OSError as error:
            raise unusable(self.folder, error) from None

    def lock(self) -> AbstractContextManager[bool]:
        """Yields whether this watcher is the only one; only then may it claim and settle."""
        return exclusive(self._lock)

    def look(self) -> Look:
        """Returns the drops in the inbox. Raises InboxError."""
        drops: list[Path] = []
        foreign: dict[str, str] = {}
        try:
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    if entry.name.startswith(_HIDDEN) or entry.name in PLACES:
                        continue
                    why = _foreign(entry, needs_marker=self._marker_only)
                    if why is None:
                        drops.append(Path(entry.path))
                    else:
                        foreign[os.fsencode(entry.name).decode(errors="replace")] = why
            complete, arriving = self._arrivals.look(drops)
        except OSError as error:
            raise unusable(self.folder, error) from None
        return Look(tuple(complete), tuple(arriving), foreign)

    @property
    def is_settling(self) -> bool:
        """Whether a drop of the last look has its marker and is complete soon."""
        return self._arrivals.is_settling

    def marker_hint(self, name: str) -> str:
        """Returns the end of a message, which names the marker that an arriving drop lacks; empty if it needs none."""
        marker = self.folder / name / self._marker
        return f": it is complete once {marker} exists" if self._marker_only and not os.path.lexists(marker) else ""

    def claim(self, name: str) -> Claim | None:
        """Moves a drop to .claimed, where its writer cannot change it; returns None if it is gone.

        Raises InboxError.
        """
        stamp = f"{self._now():%Y%m%dT%H%M%S.%fZ}"
        folder = self._claimed / stamp
        try:
            folder.mkdir()
            try:
                (self.folder / name).rename(folder / name)
            except OSError:
                folder.rmdir()
                raise
            sync(folder)
            sync(self.folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            remedy = "the watcher's user must be able to write to it"
            message = f"{self.folder / name} cannot be claimed: {error.strerror or error}"
            raise InboxError(with_remedy(message, remedy)) from None
        self._arrivals.forget(name)
        return Claim(stamp, folder / name)

    def claims(self) -> list[Claim]:
        """Returns the drops that were claimed but not settled, oldest first. Their watcher ended or failed.

        Raises:
            InboxError: if the inbox cannot be read.
        """
        found = []
        try:
            for folder in sorted(path for path in self._claimed.iterdir() if path.is_dir()):
                drop = drop_in(folder)
                if drop is not None:
                    found.append(Claim(folder.name, drop))
                elif not any(folder.iterdir()):
                    folder.rmdir()  # its watcher ended before it moved the drop there
        except OSError as error:
            raise unusable(self.folder, error) from None
        return found

    def destination(self, claim: Claim, place: SettledPlace) -> Path:
        """Returns a new path in `place` for a settled drop."""
        name = os.fsencode(claim.name)[:_LONGEST_NAME].decode(errors="ignore")
        return free_path(self.folder / place / f"{name}-{self._now():%Y%m%dT%H%M%SZ}")

    def _time_of_files(self) -> int:
        """Returns the file system's clock in ns; on a network it is not this machine's."""
        self._lock.touch()
        return self._lock.stat().st_ctime_ns


def drop_in(folder: Path) -> Path | None:
    """Returns the drop in a folder of one drop and its reports; None if the drop is gone. Raises OSError.

    The folder may contain foreign files. The report has the drop's name; without a report, the first name counts.
    """
    inside = {
        path.name: path for path in folder.iterdir() if path.name not in REPORTS and not path.name.startswith(_HIDDEN)
    }
    try:
        return inside.get(read_struct(folder / "report.json", _Named).drop)
    except (OSError, ValueError):
        return min(inside.values(), default=None)


def free_path(wanted: Path) -> Path:
    """Returns `wanted`, with a number appended if it exists."""
    found, number = wanted, 1
    while os.path.lexists(found):
        number += 1
        found = wanted.with_name(f"{wanted.name}-{number}")
    return found


def move(drop: Path, destination: Path, reports: Mapping[str, bytes]) -> None:
    """Moves the folder of `drop`, with the reports added, to `destination` in one rename. Raises InboxError."""
    folder = drop.parent
    try:
        write_reports(folder, reports)
        folder.rename(destination)
        sync(destination.parent)
        sync(folder.parent)
    except OSError as error:
        raise InboxError(f"{drop} cannot be moved to {destination.parent}: {error.strerror or error}") from None


def write_reports(folder: Path, reports: Mapping[str, bytes]) -> None:
    """Writes or replaces the reports in the folder of a drop. Raises OSError."""
    for name, text in reports.items():
        clear_aside(folder / name)
        write_atomically(folder / name, text)


def _foreign(entry: "os.DirEntry[str]", *, needs_marker: bool) -> str | None:
    """Returns why an entry of the inbox cannot be a drop; None if it can."""
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in entry.name):
        return "its name is not text"  # control characters, or bytes that are not UTF-8
    if entry.name in REPORTS:
        return "its name is that of a report"
    if entry.is_symlink():
        return "it is a link: copy its target instead"
    if entry.is_dir(follow_symlinks=False):
        return None
    if not entry.is_file(follow_symlinks=False) or not entry.name.lower().endswith(_PARQUET):
        return "it is neither a folder nor a .parquet file"
    return "it is one file, which cannot hold a marker: put it into a folder" if needs_marker else None
