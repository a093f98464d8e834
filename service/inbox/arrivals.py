"""Finds the complete drops of an inbox: those with their marker, and those unchanged for a while."""

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from pathlib import Path

import msgspec


class _Sight(msgspec.Struct, frozen=True):
    """The state of one drop at one look."""

    digest: bytes  # of all names, sizes and times
    changed: int  # newest change, in ns of the file system's clock (ctime: copying with old times cannot hide it)
    empty: bool
    marked: bool


class Arrivals:
    """Remembers the drops of one inbox from look to look. An `InboxFolder` owns it.

    A drop without the file `marker` is complete after `quiet` seconds of `clock` without a change; if `quiet` is
    infinite, only the marker completes a drop. File times do not count, because they may be old when a file arrives.
    With `by_age`, for a caller that looks only once, the last change must be `quiet` seconds ago by the file system's
    clock (`file_clock`, ns).
    """

    def __init__(
        self,
        *,
        marker: str,
        quiet: float,
        by_age: bool = False,
        clock: Callable[[], float] = time.monotonic,
        file_clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._marker = marker
        self._quiet = quiet
        self._by_age = by_age
        self._clock = clock
        self._file_clock = file_clock
        self._seen: dict[str, tuple[_Sight, float]] = {}

    def look(self, drops: Iterable[Path]) -> tuple[list[str], list[str]]:
        """Returns the names of the complete drops, and of the others, each oldest first."""
        sights = {drop.name: self._sight(drop) for drop in drops}
        self._remember(sights)
        ordered = sorted(sights, key=lambda name: (sights[name].changed, name))
        complete = [name for name in ordered if self._is_complete(name)]
        return complete, [name for name in ordered if name not in complete]

    def forget(self, name: str) -> None:
        """Forgets a drop that was moved: the next one with this name is another drop."""
        self._seen.pop(name, None)

    def _is_complete(self, name: str) -> bool:
        sight, since = self._seen[name]
        if sight.marked:
            return True
        return not sight.empty and self._clock() - since >= self._quiet

    def _remember(self, sights: dict[str, _Sight]) -> None:
        """Stores the time of each drop's last change."""
        before, self._seen = self._seen, {}
        now = self._clock()
        file_now = self._file_clock() if self._by_age and sights else 0
        for name, sight in sights.items():
            old = before.get(name)
            if old is not None and old[0].digest == sight.digest:
                since = old[1]
            else:
                since = now - (max(0, file_now - sight.changed) / 1e9 if self._by_age else 0)
            self._seen[name] = (sight, since)

    def _sight(self, drop: Path) -> _Sight:
        digest, changed, empty = blake2b(digest_size=16), 0, True
        for path, status in _walk(drop):
            seen = (status.st_size, status.st_mtime_ns) if status else None
            digest.update(f"{path}\0{seen}\0".encode(errors="surrogateescape"))
            if status is not None:
                changed = max(changed, status.st_ctime_ns)
                empty = empty and stat.S_ISDIR(status.st_mode)
        return _Sight(digest.digest(), changed, empty, os.path.lexists(drop / self._marker))


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
