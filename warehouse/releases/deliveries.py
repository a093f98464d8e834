"""When the last drop was delivered: it went live, or was current already. A rollback is no delivery."""

import logging
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import msgspec

from warehouse.files.atomic import write_atomically
from warehouse.files.reading import read_struct
from warehouse.releases.catalog import Catalog

log = logging.getLogger("forecast.warehouse")

_FILE = "delivered.json"
_CLOCKS_APART = timedelta(minutes=10)  # of hosts on one data folder, at most


class Delivery(msgspec.Struct, frozen=True):
    """The content of the file. Each delivery replaces it."""

    at: Annotated[datetime, msgspec.Meta(tz=True)]


def note_delivery(data: Path) -> None:
    """Records that a drop went live, or was already current. Raises OSError."""
    write_atomically(data / _FILE, msgspec.json.encode(Delivery(datetime.now(UTC))))


def last_delivery(data: Path) -> datetime | None:
    """Returns when the last drop was delivered; None before the first.

    Raises OSError if the data folder cannot be read.

    The newest release counts as well: the file may be missing after a crash, on a full disk, or before an upgrade.
    Times in the future are ignored, as of a wrong clock.
    """
    latest = datetime.now(UTC) + _CLOCKS_APART
    times: list[datetime] = []
    for source, at in _times(data):
        if at <= latest:
            times.append(at)
        else:
            _warn_once(f"the delivery time in {source} is ignored: {at} is in the future")
    return max(times, default=None)


def _times(data: Path) -> Iterator[tuple[Path, datetime]]:
    """Yields delivery times, with the file or folder that has them."""
    try:
        yield data / _FILE, read_struct(data / _FILE, Delivery).at
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        _warn_once(f"{data / _FILE} cannot be read: {error}; the last delivery is that of the newest release")
    catalog = Catalog(data)
    for name in catalog.names():
        with suppress(ValueError):  # another folder that is named almost like a release
            yield catalog.folder(name), datetime.strptime(name[:16], "%Y%m%dT%H%M%S%z")


@lru_cache(maxsize=100)  # every scrape of the metrics calls this
def _warn_once(message: str) -> None:
    log.warning("%s", message)
