"""When the last drop was delivered: it went live, or brought what was current already. A rollback delivers nothing."""

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from warehouse.files.atomic import write_atomically
from warehouse.files.reading import read_struct
from warehouse.releases.catalog import Catalog

_FILE = "delivered.json"


class Delivery(msgspec.Struct, frozen=True):
    """The content of the file. Each delivery replaces it."""

    at: datetime
    release: str  # current since then, or already


def note_delivery(data: Path, release: str) -> None:
    """Call when a drop went live, or was already current, as `release`. Raises OSError."""
    write_atomically(data / _FILE, msgspec.json.encode(Delivery(datetime.now(UTC), release)))


def last_delivery(data: Path) -> datetime | None:
    """When the last drop was delivered; None before the first. Raises OSError if the data folder cannot be read.

    The newest release tells as well: the file may be missing after a crash, on a full disk, or before an upgrade.
    """
    times: list[datetime] = []
    with suppress(OSError, ValueError):
        times.append(read_struct(data / _FILE, Delivery).at)
    with suppress(ValueError):  # somebody's folder that is named almost like a release
        times += [datetime.strptime(name[:16], "%Y%m%dT%H%M%S%z") for name in Catalog(data).names()[:1]]
    return max(times, default=None)
