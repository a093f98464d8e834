"""The verdicts on a presented key."""

from datetime import datetime
from typing import Literal

import msgspec

from service.keys.record import ApiKey


class Accepted(msgspec.Struct, frozen=True):
    """The key is valid."""

    key: ApiKey


class Rejected(msgspec.Struct, frozen=True):
    """The key is invalid. Reasons but `invalid`, with `key_id` and `since`, are only for keys with the right secret."""

    reason: Literal["invalid", "pending", "suspended", "expired", "revoked"]
    key_id: str | None = None
    since: datetime | None = None  # when it stopped working, or will begin to
    fault: str | None = None  # in its form, as a hint for its sender


class Unknown(msgspec.Struct, frozen=True):
    """The store is unreachable, and the cached record is missing or too old."""

    reason: str


KeyVerdict = Accepted | Rejected | Unknown
INVALID = Rejected("invalid")
