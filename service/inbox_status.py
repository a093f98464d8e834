"""What the inbox's watcher has done, kept in the data folder over restarts, for every instance's /metrics."""

from pathlib import Path

import msgspec

from warehouse.durable import clear_aside, write_atomically
from warehouse.reading import read_struct

_FILE = "inbox.json"


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


def read_status(data: Path) -> Status:
    """What there is; a file that cannot be read counts for nothing, and is replaced by what happens next."""
    try:
        return read_struct(data / _FILE, Status)
    except (OSError, ValueError):
        return Status()


class StatusFile:
    """The file, for the one watcher that may write it. All changes may raise OSError; nothing is changed then."""

    def __init__(self, data: Path) -> None:
        self._path = data / _FILE
        clear_aside(self._path)
        self.now = read_status(data)

    def waiting(self, number: int) -> None:
        self._change(waiting=number)

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
