"""Is this store the one that our keys are in? What a data folder remembers of the sentinel, ``k:control``.

A store that was emptied has no sentinel. One that was emptied and begun anew, by somebody who knew nothing of it, has
another: its beginning is another moment. Neither may turn into 401 for everybody, so what is remembered is that moment,
and another one is believed only if an operator decided it later (`Control.accepted_at`): by an import, or by adopting
the store. Then every worker believes it by itself, whatever its data folder.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from service.keys.record import Control
from warehouse.files.atomic import write_atomically
from warehouse.files.file_access import returned_within
from warehouse.files.reading import read_regular

# In the data folder: keys were seen in the store, so an empty one is a loss and not a beginning.
SEEN = "key-store-seen"
_WRITE_SECONDS = 1.0

MEND = "restore its backup (`forecast keys import`), or accept the loss with `forecast keys adopt-store`"
_EMPTY = "the key store is empty, but keys were in it before"
_ANOTHER = "the key store is not the one that our keys were in: it was emptied and begun anew, or is an older copy"
_PEPPER = (
    "the keys in the store were made with another pepper: set FORECAST_KEYS_PEPPER (or restore the file `pepper` of "
    "the data folder), or give up those keys with `forecast keys adopt-store`"
)


class Memory:
    """`data` is the data folder; `fingerprint` is the pepper's. A folder that cannot be written is no obstacle: the
    process still remembers.
    """

    def __init__(self, data: Path, fingerprint: str) -> None:
        self._file = data / SEEN
        self._fingerprint = fingerprint
        self.seen, self._since = _read(self._file)

    def problem(self, control: Control | None) -> str | None:
        """Why the store with this sentinel is not ours, and what to do; None if it is."""
        if control is None:
            return f"{_EMPTY}: {MEND}" if self.seen else None
        if control.pepper_fingerprint != self._fingerprint:
            return _PEPPER
        if not self.believes(control):
            return f"{_ANOTHER}: {MEND}"
        return None

    def believes(self, control: Control) -> bool:
        if self._since is None or control.since == self._since:
            return True
        return control.accepted_at is not None and control.accepted_at > self._since

    def keep(self, control: Control) -> None:
        """From now on another store is a loss, also for processes that start later."""
        if control.since == self._since:
            return
        self.seen, self._since = True, control.since
        try:
            returned_within(_WRITE_SECONDS, self._write, control.since)  # an event loop may wait for it, once
        except OSError:
            return

    def _write(self, since: datetime) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self._file, since.isoformat().encode() + b"\n")

    def decision(self, *others: Control | None) -> datetime:
        """The moment of an operator's decision: now, but later than all that is known, whatever the clocks say."""
        known = [control.since for control in others if control is not None]
        if self._since is not None:
            known.append(self._since)
        return max([datetime.now(UTC), *(moment + timedelta(microseconds=1) for moment in known)])


def _read(file: Path) -> tuple[bool, datetime | None]:
    """Whether a store was seen, and since when it was ours: unknown if the file does not say."""
    try:
        since = datetime.fromisoformat(read_regular(file).decode("ascii").strip())
    except FileNotFoundError:
        return False, None
    except (OSError, ValueError):
        return file.exists(), None
    return True, since if since.tzinfo is not None else None
