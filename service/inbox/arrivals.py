"""Finds the complete drops of an inbox: those that have not changed for a while, which a marker shortens."""

import math
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from pathlib import Path

import msgspec

_LATE_SECONDS = 30.0  # for a file that is newer than the marker, if only the marker completes a drop


class _Sight(msgspec.Struct, frozen=True):
    """The state of one drop at one look."""

    digest: bytes  # of all names, sizes and times
    changed: int  # newest change, in ns of the file system's clock (ctime: copying with old times cannot hide it)
    empty: bool
    marked: bool
    marked_last: bool  # the marker is as new as every other file, and there is one


class Arrivals:
    """Remembers the drops of one inbox from look to look. An `InboxFolder` owns it.

    A drop is complete after `quiet` seconds of `clock` without a change, or after `settle` seconds if its newest file
    is the file `marker`. Tools that copy in the order of names write `_SUCCESS` before `part-0`. So while a file is
    newer than the marker, or there is none beside it, others may follow, and the drop waits as if it had no marker. If
    `quiet` is infinite, a drop without a marker is never complete. File times do not count, because they may be old
    when a file arrives. With `file_clock`, for a caller that does not look all the time, the last change must be that
    long ago by this clock, the file system's (ns).
    """

    def __init__(
        self,
        *,
        marker: str,
        quiet: float,
        settle: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
        file_clock: Callable[[], int] | None = None,
    ) -> None:
        self._marker = marker
        self._quiet = quiet
        self._settle = min(settle, quiet)
        self._clock = clock
        self._file_clock = file_clock
        self._seen: dict[str, tuple[_Sight, float]] = {}
        self.is_settling = False  # at the last look, a drop was incomplete only because its marker is new

    def look(self, drops: Iterable[Path]) -> tuple[list[str], list[str]]:
        """Returns the names of the complete drops, and of the others, each oldest first."""
        sights = {drop.name: self._sight(drop) for drop in drops}
        self._remember(sights)
        ordered = sorted(sights, key=lambda name: (sights[name].changed, name))
        complete = [name for name in ordered if self._is_complete(name)]
        arriving = [name for name in ordered if name not in complete]
        self.is_settling = any(sights[name].marked_last for name in arriving)
        return complete, arriving

    def forget(self, name: str) -> None:
        """Forgets a drop that was moved: the next one with this name is another drop."""
        self._seen.pop(name, None)

    def _is_complete(self, name: str) -> bool:
        sight, since = self._seen[name]
        return not sight.empty and self._clock() - since >= self._unchanged_seconds(sight)

    def _unchanged_seconds(self, sight: _Sight) -> float:
        """Returns how long a drop must not have changed to be complete."""
        if sight.marked_last:
            return self._settle
        return _LATE_SECONDS if sight.marked and math.isinf(self._quiet) else self._quiet

    def _remember(self, sights: dict[str, _Sight]) -> None:
        """Stores the time of each drop's last change."""
        before, self._seen = self._seen, {}
        now = self._clock()
        file_now = self._file_clock() if self._file_clock is not None and sights else None
        for name, sight in sights.items():
            old = before.get(name)
            if old is not None and old[0].digest == sight.digest:
                since = old[1]
            else:
                since = now if file_now is None else now - max(0, file_now - sight.changed) / 1e9
            self._seen[name] = (sight, since)

    def _sight(self, drop: Path) -> _Sight:
        digest, changed, newest, marked = blake2b(digest_size=16), 0, 0, 0
        for path, status in _walk(drop):
            seen = (status.st_size, status.st_mtime_ns) if status else None
            digest.update(f"{path}\0{seen}\0".encode(errors="surrogateescape"))
            if status is None:
                continue
            changed = max(changed, status.st_ctime_ns)
            if path == drop / self._marker:
                marked = status.st_ctime_ns
            elif not stat.S_ISDIR(status.st_mode):
                newest = max(newest, status.st_ctime_ns)
        return _Sight(
            digest=digest.digest(),
            changed=changed,
            empty=not newest and not marked,
            marked=bool(marked),
            marked_last=marked >= newest > 0,
        )


def _walk(drop: Path) -> Iterator[tuple[Path, os.stat_result | None]]:
    """Yields the drop and all that is in it, including hidden files: writers keep unfinished data in them."""
    yield drop, _status(drop)
    for folder, folders, names in os.walk(drop):
        folders.sort()
        for name in sorted([*folders, *names]):
            path = Path(folder) / name
            yield path, _status(path)


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None  # removed since its folder was listed: the next look sees that change
