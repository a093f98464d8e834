"""What the data folder says of releases and drops, as every instance on it shows to its operators."""

import os
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from service.publishing.inbox_status import Status, shown_status
from warehouse.releases.catalog import Catalog
from warehouse.releases.deliveries import last_delivery

_RELEASES = 10


class FolderNews(msgspec.Struct, frozen=True, kw_only=True):
    """What was read last. The supervisor keeps the newest one."""

    inbox: Status = Status()  # of all watchers on the data folder
    delivered: datetime | None = None  # when the last drop was; None before the first
    releases: tuple[str, ...] = ()  # ids of the newest, newest first
    disk_free: int | None = None  # bytes
    disk_size: int | None = None

    def last_drop_age(self) -> float | None:
        """Seconds since the last drop was delivered."""
        return None if self.delivered is None else max(0.0, time.time() - self.delivered.timestamp())


def read_folder_news(data: Path) -> FolderNews:
    """The workers tell of a data folder that cannot be read; here it is empty."""
    delivered = free = size = None
    releases: tuple[str, ...] = ()
    with suppress(OSError):
        delivered = last_delivery(data)
    with suppress(OSError):
        releases = tuple(Catalog(data).names()[:_RELEASES])
    with suppress(OSError):
        found = os.statvfs(data)
        free, size = found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
    return FolderNews(
        inbox=shown_status(data),
        delivered=delivered,
        releases=releases,
        disk_free=free,
        disk_size=size,
    )
