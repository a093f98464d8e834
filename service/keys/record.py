"""What the key store holds on one API key, and on itself."""

from datetime import UTC, datetime
from typing import Literal

import msgspec

Status = Literal["active", "expired", "revoked"]


class ApiKey(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`digest` is the secret's (form.digest). Members that a later version adds are kept by nobody and break nobody."""

    key_id: str
    partner: str
    digest: str
    created_at: datetime
    label: str = ""
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def status(self, now: datetime | None = None) -> Status:
        if self.revoked_at is not None:
            return "revoked"
        if self.expires_at is not None and self.expires_at <= (now or datetime.now(UTC)):
            return "expired"
        return "active"


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """The sentinel: proves that this store is the one that holds the keys, and under which pepper."""

    pepper_fingerprint: str
    created_at: datetime


class KeyView(msgspec.Struct, frozen=True, kw_only=True):
    """A key as operators see it: everything but the digest."""

    key_id: str
    partner: str
    label: str
    status: Status
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None

    @classmethod
    def of(cls, key: ApiKey) -> "KeyView":
        return cls(
            key_id=key.key_id,
            partner=key.partner,
            label=key.label,
            status=key.status(),
            created_at=key.created_at,
            expires_at=key.expires_at,
            revoked_at=key.revoked_at,
        )
