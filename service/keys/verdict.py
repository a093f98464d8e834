"""What the key check says of a presented key."""

from datetime import datetime
from typing import Literal

import msgspec

from service.keys.record import ApiKey


class Accepted(msgspec.Struct, frozen=True):
    """The key is good."""

    key: ApiKey


class Rejected(msgspec.Struct, frozen=True):
    """The key is not good. Only who presents the right secret learns `expired` or `revoked`, with `key_id` and
    `since`."""

    reason: Literal["invalid", "expired", "revoked"]
    key_id: str | None = None
    since: datetime | None = None  # when it stopped working
    fault: str | None = None  # of its form, for its sender


class Unknown(msgspec.Struct, frozen=True):
    """The store cannot be asked, and what is known is missing or too old."""

    reason: str


KeyVerdict = Accepted | Rejected | Unknown
INVALID = Rejected("invalid")
