"""The verdicts on a presented key."""

from datetime import datetime
from typing import Literal

import msgspec

from service.keys.record import ApiKey


class Accepted(msgspec.Struct, frozen=True):
    """The key is valid."""

    key: ApiKey


class Rejected(msgspec.Struct, frozen=True):
    """The key is invalid. `expired` or `revoked`, with `key_id` and `since`, is only for keys with the right secret."""

    reason: Literal["invalid", "expired", "revoked"]
    key_id: str | None = None
    since: datetime | None = None  # when it stopped working
    fault: str | None = None  # in its form, as a hint for its sender


class Unknown(msgspec.Struct, frozen=True):
    """The store is unreachable, and the cached record is missing or too old."""

    reason: str


KeyVerdict = Accepted | Rejected | Unknown
INVALID = Rejected("invalid")
