"""A key before it is stored: its id, and the seed of its secret."""

import hmac
import secrets
from datetime import datetime
from hashlib import sha256
from typing import Annotated

import msgspec
from msgspec import Meta

from service.keys import form
from service.keys.record import Moment

_SEED_BYTES = 32


class KeyDraft(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A key before it is stored. `request` is the digest of the request that it was made for."""

    key_id: str
    created_at: Moment
    seed: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
    test: bool = False
    request: str = ""

    def parts(self, pepper: bytes) -> tuple[str, form.PresentedKey]:
        """Returns the key as its owner gets it, and its parts."""
        bits = int.from_bytes(derived(pepper, b"secret", self.seed))
        return form.assembled(self.key_id, bits, test=self.test)


def new_draft(now: datetime, *, test: bool = False, request: bytes = b"") -> KeyDraft:
    """Returns a draft with a random id and seed."""
    return KeyDraft(
        key_id=form.new_id(),
        created_at=now,
        seed=secrets.token_hex(_SEED_BYTES),
        test=test,
        request=sha256(request).hexdigest() if request else "",
    )


def derived(pepper: bytes, purpose: bytes, seed: str) -> bytes:
    """Returns 32 bytes for one purpose, which need the pepper as well as the seed."""
    return hmac.new(pepper, b"%s of a key: %s" % (purpose, seed.encode()), sha256).digest()
