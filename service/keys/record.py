"""What the key store holds on one API key, and on itself.

Records are checked as they are read, down to the members: what passes can be compared, shown and stored again.
"""

from datetime import UTC, datetime
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta

from service.base.terms import MOST, Terms
from service.keys.names import record_name
from service.redis.client import StoreUnavailable

Status = Literal["active", "expired", "revoked"]
ShownStatus = Literal["active", "expired", "revoked", "void"]

NO_TERMS = Terms()

# One without a time zone could not be compared with any other.
Moment = Annotated[datetime, Meta(tz=True)]
Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
# Of moments that tell stores apart: a later one leaves no room for an operator's next decision.
_LATEST = datetime(9999, 1, 1, tzinfo=UTC)


class End(msgspec.Struct, frozen=True, omit_defaults=True):
    """When a key stops working; None: never."""

    expires_at: Moment | None = None


class ApiKey(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`digest` is the secret's (form.digest). Members that a later version adds are kept by nobody and break nobody.

    `pepper` is the fingerprint of the pepper that the digest was made with, empty in records of the first version.
    `revision` counts the changes since the key was issued: of two records of a key the higher one is newer. Who made
    a change, and when, is in the audit trail. `unrotated` is the end that the key had before a rotation shortened it,
    until somebody sets another.
    """

    key_id: str
    partner: str
    digest: Digest
    created_at: Moment
    label: str = ""
    expires_at: Moment | None = None
    revoked_at: Moment | None = None
    terms: Terms = NO_TERMS
    rotated_from: str | None = None
    rotated_to: str | None = None
    unrotated: End | None = None
    pepper: str = ""
    revision: Annotated[int, Meta(ge=0, le=MOST)] = 0

    def status(self, now: datetime | None = None) -> Status:
        if self.revoked_at is not None:
            return "revoked"
        if self.expires_at is not None and self.expires_at <= (now or datetime.now(UTC)):
            return "expired"
        return "active"


class Control(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The sentinel: proves that this store is the one that holds the keys, and under which pepper.

    `adopted_at`: when an operator gave up the keys that were made before, under another pepper. `accepted_at`: when an
    operator last said that the store is right as it is, by importing into it or adopting it.
    """

    pepper_fingerprint: str
    created_at: Moment
    adopted_at: Moment | None = None
    accepted_at: Moment | None = None

    def __post_init__(self) -> None:
        if self.since > _LATEST:
            raise ValueError("it is from the end of time")

    @property
    def since(self) -> datetime:
        """The moment that tells this store from another (sentinel.py)."""
        return self.accepted_at or self.created_at

    def voids(self, key: ApiKey) -> bool:
        """Whether `key` can never be verified again, because it was made with another pepper."""
        if key.pepper:
            return key.pepper != self.pepper_fingerprint
        return self.adopted_at is not None and key.created_at < self.adopted_at


class Damaged(msgspec.Struct, frozen=True):
    """A record that cannot be read. `key_id` is what its name says."""

    key_id: str
    reason: str
    status: Literal["damaged"] = "damaged"


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What can change about a key."""

    expires_at: Moment | None = None
    revoked_at: Moment | None = None
    terms: Terms = NO_TERMS

    @classmethod
    def of(cls, key: ApiKey) -> "State":
        return cls(expires_at=key.expires_at, revoked_at=key.revoked_at, terms=key.terms)


class KeyView(msgspec.Struct, frozen=True, kw_only=True):
    """A key as operators see it: no digest. A `void` one was made with another pepper and never works again."""

    key_id: str
    partner: str
    label: str
    status: ShownStatus
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    terms: Terms
    rotated_from: str | None
    rotated_to: str | None

    @classmethod
    def of(cls, key: ApiKey, control: Control | None = None) -> "KeyView":
        """`control` is the sentinel of the store that `key` is from; without it nothing is void."""
        status: ShownStatus = key.status()
        if status != "revoked" and control is not None and control.voids(key):
            status = "void"
        return cls(
            key_id=key.key_id,
            partner=key.partner,
            label=key.label,
            status=status,
            created_at=key.created_at,
            expires_at=key.expires_at,
            revoked_at=key.revoked_at,
            terms=key.terms,
            rotated_from=key.rotated_from,
            rotated_to=key.rotated_to,
        )


class DamagedRecordError(StoreUnavailable):
    """A record is not what it should be: nothing is known about what it was."""


R = TypeVar("R", ApiKey, Control)


def decoded(reply: object, kind: type[R], name: str) -> R | None:
    """The record `name` from the server's `reply`, None if there is none.

    Raises:
        DamagedRecordError: if it is no such record.
    """
    if reply is None:
        return None
    if not isinstance(reply, bytes | str):
        raise _damaged(name, reply if isinstance(reply, Exception) else f"a reply of type {type(reply).__name__}")
    try:
        return msgspec.json.decode(reply, type=kind)
    except (ValueError, RecursionError) as error:
        raise _damaged(name, error) from None


def decoded_key(reply: object, key_id: str) -> ApiKey | None:
    """The same for the record of a key, which has to be that of `key_id`."""
    name = record_name(key_id)
    key = decoded(reply, ApiKey, name)
    if key is not None and key.key_id != key_id:
        raise _damaged(name, "it is another record")
    return key


def _damaged(name: str, why: object) -> DamagedRecordError:
    # the name as it can be printed: anything may lie in the store
    return DamagedRecordError(f"the record `{ascii(name)[1:-1]}` of the key store is damaged: {why}")
