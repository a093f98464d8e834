"""What the key check says of a presented key."""

from typing import Literal

import msgspec

from service.keys.record import ApiKey


class Accepted(msgspec.Struct, frozen=True):
    key: ApiKey


class Rejected(msgspec.Struct, frozen=True):
    """Only whoever presents the right secret learns `expired` or `revoked`; `key_id` is None for everyone else."""

    reason: Literal["invalid", "expired", "revoked"]
    key_id: str | None = None


class Unknown(msgspec.Struct, frozen=True):
    """The store cannot be asked, and what is known is too old."""

    reason: str


Verdict = Accepted | Rejected | Unknown
INVALID = Rejected("invalid")
