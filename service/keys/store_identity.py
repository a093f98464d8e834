"""Whether a key store is the one with our keys, by its identity ``k:control`` (Decision 10).

An emptied store has no identity. A store that was emptied and recreated has another one, with a later creation time.
Neither may cause a 401 for every key. So the data folder remembers the creation time of our store. Another one is
accepted only if an operator decided so later (`StoreIdentity.accepted_at`), by an import or by adopting the store. Then
every worker accepts it, regardless of its data folder.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from service.keys.record import StoreIdentity
from warehouse.files.atomic import write_atomically
from warehouse.files.file_access import returned_within
from warehouse.files.reading import read_regular

# A file in the data folder: the store has had keys, so an empty store is a loss, not a new one.
SEEN = "key-store-seen"
_WRITE_SECONDS = 1.0

MEND = "restore its backup (`forecast keys import`), or accept the loss with `forecast keys adopt-store`"
_LOST = "the key store has lost its identity: it was emptied, or its files are damaged"
_ANOTHER = "the key store is not the one that our keys were in: it was emptied and recreated, or is an older copy"
_PEPPER = (
    "the keys in the store were made with another pepper: set FORECAST_KEYS_PEPPER (or restore the file `pepper` of "
    "the data folder), or give up those keys with `forecast keys adopt-store`"
)


class KnownStore:
    """Part of one KeyStore: which store is ours, as of the data folder and of this process.

    `fingerprint` is the pepper's. If the folder cannot be written, the process still remembers.
    """

    def __init__(self, data: Path, fingerprint: str) -> None:
        self._file = data / SEEN
        self._fingerprint = fingerprint
        self.seen, self._since = _read(self._file)

    def problem(self, identity: StoreIdentity | None) -> str | None:
        """Returns why the store with this identity is not ours, and what to do; None if it is ours."""
        if identity is None:
            return f"{_LOST}: {MEND}" if self.seen else None
        if identity.pepper_fingerprint != self._fingerprint:
            return _PEPPER
        if not self.trusts(identity):
            return f"{_ANOTHER}: {MEND}"
        return None

    def trusts(self, identity: StoreIdentity) -> bool:
        if self._since is None or identity.since == self._since:
            return True
        return identity.accepted_at is not None and identity.accepted_at > self._since

    def keep(self, identity: StoreIdentity) -> None:
        """Remembers the store: from now on another one counts as a loss, also for later processes."""
        if identity.since == self._since:
            return
        self.seen, self._since = True, identity.since
        try:
            returned_within(_WRITE_SECONDS, self._write, identity.since)  # may hold up an event loop, once
        except OSError:
            return

    def _write(self, since: datetime) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self._file, since.isoformat().encode() + b"\n")

    def decision(self, *others: StoreIdentity | None) -> datetime:
        """Returns the time of an operator's decision: now, but later than all known times, despite wrong clocks."""
        known = [identity.since for identity in others if identity is not None]
        if self._since is not None:
            known.append(self._since)
        return max([datetime.now(UTC), *(moment + timedelta(microseconds=1) for moment in known)])


def _read(file: Path) -> tuple[bool, datetime | None]:
    """Returns whether a store was seen, and since when it has been ours; None if the file lacks it."""
    try:
        since = datetime.fromisoformat(read_regular(file).decode("ascii").strip())
    except FileNotFoundError:
        return False, None
    except (OSError, ValueError):
        return file.exists(), None
    return True, since if since.tzinfo is not None else None
