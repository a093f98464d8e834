"""The verdicts on a presented key, and a verified key as it is cached."""

import asyncio
from datetime import datetime
from typing import Literal

import msgspec

from service.keys.record import ApiKey

# From this age on, a verified key is looked up again.
RECHECK_AFTER_SECONDS = 3.0


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


class Verified:
    """A key that one worker verified, cached by its KeyVerifier until it is invalid or evicted.

    `lookup` numbers the look-up that `key` is from: an older one that ends later is ignored. `forgotten`: it is no
    longer kept up to date. Before `good_before` (monotonic seconds), the key is valid without a check.
    """

    __slots__ = ("checked_at", "fingerprint", "forgotten", "good_before", "key", "lookup", "recheck")

    def __init__(self, fingerprint: bytes, key: ApiKey, checked_at: float, lookup: int) -> None:
        self.fingerprint = fingerprint
        self.key = key
        self.lookup = lookup
        self.forgotten = False
        self.recheck: asyncio.Task[None] | None = None
        self.checked(checked_at)

    def checked(self, at: float) -> None:
        """Stores the record of a key, as looked up at that time."""
        lasts = self.key.is_always_active and not self.forgotten
        self.checked_at = at
        self.good_before = at + RECHECK_AFTER_SECONDS if lasts else float("-inf")
