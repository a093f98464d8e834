"""The records of the key store: two for each API key, and its own identity.

Records are validated when they are read, down to their members: so they can be compared, shown and stored again.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, ClassVar, Literal, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Meta

from config.text import printable
from service.base.terms import MOST, Terms
from service.keys.errors import DamagedRecordError

KeyStatus = Literal["active", "pending", "suspended", "expired", "revoked"]
ShownStatus = Literal["active", "pending", "suspended", "expired", "revoked", "void"]

NO_TERMS = Terms()
NEVER_USED: Mapping[str, datetime] = {}

# A time without a time zone could not be compared with others.
Moment = Annotated[datetime, Meta(tz=True)]
PlanName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]{1,64}$(?!\n)")]  # in JavaScript too, for OpenAPI
Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
# The latest time that may identify a store: an operator's next decision must be later.
_LATEST = datetime(9999, 1, 1, tzinfo=UTC)

# In the key store: what the names of key records begin with, and the name of the store's identity.
KEY_RECORD_PREFIX = "k:"
IDENTITY = "k:control"


def record_name(key_id: str) -> str:
    return f"{KEY_RECORD_PREFIX}{{{key_id}}}"


def more_name(key_id: str) -> str:
    """Returns the name of the second record. Scans for `k:{`, also those of earlier versions, do not find it."""
    return f"{KEY_RECORD_PREFIX}+{{{key_id}}}"


def key_id_of(name: str) -> str | None:
    """Returns the id of the key that has a record of this name; None if none can."""
    text = name.removeprefix(KEY_RECORD_PREFIX).removeprefix("+")
    return text[1:-1] if text.startswith("{") and text.endswith("}") else None


class KeyExpiry(msgspec.Struct, frozen=True, omit_defaults=True):
    """When a key stops working; None: never. Distinguishes "no end" from "not recorded" in a record."""

    expires_at: Moment | None = None


class Named(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A record that many keys share, under a name."""

    PREFIX: ClassVar[str]

    name: str
    terms: Terms = NO_TERMS
    revision: Annotated[int, Meta(ge=0, le=MOST)] = 0  # changes so far: the higher record is newer
    removed: bool = False

    @classmethod
    def record_name(cls, name: str) -> str:
        return f"{cls.PREFIX}{quote(name, safe='')}"


class Plan(Named, frozen=True, kw_only=True, omit_defaults=True):
    """Terms for many keys; a key's own terms come first. A removed plan keeps its terms, so that it opens no key."""

    PREFIX = f"{KEY_RECORD_PREFIX}plan:"


class Partner(Named, frozen=True, kw_only=True, omit_defaults=True):
    """A rate and a quota that all keys of a partner share; `contact` is for operators. Never removed."""

    PREFIX = f"{KEY_RECORD_PREFIX}partner:"

    contact: str = ""


class Suspension(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why and since when a key is suspended; `reason` is for operators only.

    Meanwhile the key's record ends at `at`, so that earlier versions of this service reject the key too. `ends` and
    `unrotated` are what it had before.
    """

    at: Moment
    by: str
    reason: str
    ends: KeyExpiry = KeyExpiry()
    unrotated: KeyExpiry | None = None


class MoreOfKey(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The second record of a key, which earlier versions of this service neither read nor write (Decision 34).

    Like the first record, it loses members that a later version adds.
    """

    plan: PlanName | None = None
    not_before: Moment | None = None
    suspended: Suspension | None = None
    revision: Annotated[int, Meta(ge=0, le=MOST)] = 0  # of the first record, when this one was last changed


NO_MORE = MoreOfKey()


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first record of one key, which is never deleted. Its changes are in the audit trail.

    Members that a later version adds are ignored, and lost when the record is written.
    """

    key_id: str
    partner: str
    digest: Digest  # of the secret (form.digest)
    created_at: Moment
    label: str = ""
    expires_at: Moment | None = None
    revoked_at: Moment | None = None
    terms: Terms = NO_TERMS
    test: bool = False  # answered from fixed test data, and never billed
    rotated_from: str | None = None  # the key that this one replaces
    rotated_to: str | None = None  # the key that replaces this one
    unrotated: KeyExpiry | None = None  # the end before a rotation shortened it, until an operator sets another
    pepper: str = ""  # fingerprint of the pepper that the digest was made with; empty in records of the first version
    revision: Annotated[int, Meta(ge=0, le=MOST)] = 0  # changes since it was issued: the higher record is newer


class ApiKey(KeyRecord, frozen=True, kw_only=True):
    """A key with both of its records. As requests see it, `terms` are the effective ones, with those of the `plan`."""

    more: MoreOfKey = NO_MORE
    plan: Plan | None = None
    shared: Partner | None = None  # the limits of its partner, if it has any

    @classmethod
    def of(cls, record: KeyRecord, more: MoreOfKey) -> "ApiKey":
        return cls(**msgspec.structs.asdict(record), more=more)

    @property
    def record(self) -> KeyRecord:
        """The first record alone."""
        return KeyRecord(**{name: getattr(self, name) for name in KeyRecord.__struct_fields__})

    @property
    def is_always_active(self) -> bool:
        """Whether the key is active at any time."""
        more = self.more
        return self.expires_at is None and self.revoked_at is None and more.not_before is None and not more.suspended

    def status(self, now: datetime | None = None) -> KeyStatus:
        now = now or datetime.now(UTC)
        if self.revoked_at is not None:
            return "revoked"
        if self.more.suspended is not None:
            return "suspended"
        if self.expires_at is not None and self.expires_at <= now:
            return "expired"
        if self.more.not_before is not None and self.more.not_before > now:
            return "pending"
        return "active"

    def since(self, status: KeyStatus) -> datetime | None:
        """Returns when the key got this status, or will leave `pending`."""
        match status:
            case "revoked":
                return self.revoked_at
            case "suspended":
                return self.more.suspended.at if self.more.suspended else None
            case "pending":
                return self.more.not_before
            case "expired":
                return self.expires_at
            case "active":
                return self.created_at


class StoreIdentity(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The identity of a key store, with the pepper that its keys were made with. One per store."""

    pepper_fingerprint: str
    created_at: Moment
    adopted_at: Moment | None = None  # when an operator abandoned the earlier keys, made with another pepper
    accepted_at: Moment | None = None  # when an operator last accepted the store, by an import or by adopting it

    def __post_init__(self) -> None:
        if self.since > _LATEST:
            raise ValueError("its timestamp is after the year 9999")

    @property
    def since(self) -> datetime:
        """Time that identifies this store (store_identity.py)."""
        return self.accepted_at or self.created_at

    def voids(self, key: KeyRecord) -> bool:
        """Returns whether `key` was made with another pepper, and so can never be verified."""
        if key.pepper:
            return key.pepper != self.pepper_fingerprint
        return self.adopted_at is not None and key.created_at < self.adopted_at


class DamagedKey(msgspec.Struct, frozen=True):
    """A record that cannot be read, as listings and commands show it. `key_id` is from its name."""

    key_id: str
    reason: str
    status: Literal["damaged"] = "damaged"


class KeyState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The parts of a key that can change, as recorded in the audit trail."""

    expires_at: Moment | None = None
    revoked_at: Moment | None = None
    terms: Terms = NO_TERMS
    more: MoreOfKey = NO_MORE

    @classmethod
    def of(cls, key: ApiKey) -> "KeyState":
        return cls(expires_at=key.expires_at, revoked_at=key.revoked_at, terms=key.terms, more=key.more)

    @property
    def ends(self) -> datetime | None:
        """When the key ends, or would without its suspension."""
        return self.more.suspended.ends.expires_at if self.more.suspended else self.expires_at


class KeyView(msgspec.Struct, frozen=True, kw_only=True):
    """A key as operators see it, without its digest. A `void` key was made with another pepper and never works."""

    key_id: str
    partner: str
    label: str
    status: ShownStatus
    created_at: datetime
    not_before: datetime | None
    expires_at: datetime | None
    suspended: Suspension | None
    revoked_at: datetime | None
    plan: str | None
    terms: Terms  # without the plan's
    test: bool
    rotated_from: str | None
    rotated_to: str | None
    # by the minute; None if never, or not known, as for test keys; absent in the answer to a change
    last_used: datetime | msgspec.UnsetType | None = msgspec.UNSET

    @classmethod
    def of(
        cls, key: ApiKey, identity: StoreIdentity | None = None, last_used: Mapping[str, datetime] | None = None
    ) -> "KeyView":
        """Returns the view of `key`; `identity` is its store's, without which no key is void.

        `last_used` is by key id; None if it was not read.
        """
        status: ShownStatus = key.status()
        if status != "revoked" and identity is not None and identity.voids(key):
            status = "void"
        return cls(
            key_id=key.key_id,
            partner=key.partner,
            label=key.label,
            status=status,
            created_at=key.created_at,
            not_before=key.more.not_before,
            expires_at=KeyState.of(key).ends,
            suspended=key.more.suspended,
            revoked_at=key.revoked_at,
            plan=key.more.plan,
            terms=key.terms,
            test=key.test,
            rotated_from=key.rotated_from,
            rotated_to=key.rotated_to,
            last_used=msgspec.UNSET if last_used is None else last_used.get(key.key_id),
        )


R = TypeVar("R", bound=msgspec.Struct)


def decode_record(reply: object, kind: type[R], name: str) -> R | None:
    """Returns the record `name` from the server's `reply`, None if there is none.

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


def decoded_key(reply: object, key_id: str, more: object = None) -> ApiKey | None:
    """Decodes the records of a key in the same way; the first must be that of `key_id`."""
    name = record_name(key_id)
    key = decode_record(reply, KeyRecord, name)
    if key is None:
        return None
    if key.key_id != key_id:
        raise _damaged(name, "it is another record")
    name = more_name(key_id)
    return ApiKey.of(key, decode_record(more, MoreOfKey, name) or NO_MORE)


def _damaged(name: str, why: object) -> DamagedRecordError:
    # escaped: a name in the store may have any bytes
    return DamagedRecordError(f"the record `{printable(name)}` of the key store is damaged: {why}")
