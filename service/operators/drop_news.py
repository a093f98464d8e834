"""What the data folder says of drops, as every instance on it shows to its operators."""

import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from service.publishing.inbox_status import Status, shown_status
from warehouse.releases.deliveries import last_delivery


class DropNews(msgspec.Struct, frozen=True):
    """What was read last. The supervisor keeps the newest one."""

    inbox: Status = Status()  # of all watchers on the data folder
    delivered: datetime | None = None  # when the last drop was; None before the first

    def last_drop_age(self) -> float | None:
        """Seconds since the last drop was delivered."""
        return None if self.delivered is None else max(0.0, time.time() - self.delivered.timestamp())


def read_drop_news(data: Path) -> DropNews:
    delivered = None
    with suppress(OSError):  # the workers tell of a data folder that cannot be read
        delivered = last_delivery(data)
    return DropNews(shown_status(data), delivered)
