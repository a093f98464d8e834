"""Issues keys and changes their records. Keys are never deleted.

Every change is made together with its line in the audit trail (audit.py).
"""

from collections.abc import Callable, Container, Sequence
from copy import copy
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from service.base.terms import Terms
from service.base.whoami import whoami
from service.keys import audit, form
from service.keys.audit import Edit
from service.keys.draft import KeyDraft, new_draft
from service.keys.edits import RawKey, edits_of, with_next_revision
from service.keys.errors import BusyRecordError, OtherRevisionError
from service.keys.reader import KeyReader
from service.keys.record import (
    IDENTITY,
    NO_MORE,
    NO_TERMS,
    ApiKey,
    MoreOfKey,
    StoreIdentity,
    more_name,
    record_name,
)
from service.redis.client import RedisStore
from service.redis.errors import StoreRefused, StoreUnavailable
from service.redis.primary import Primary, open_store

# Timeout of a command: longer than the server's for confirming that a change is on disk (`audit.confirmed`).
_TIMEOUT_SECONDS = 3.0
# A try fails if another client changed the key meanwhile.
_TRIES = 10


class KeyStore(KeyReader):
    """Reads and changes the keys in one Redis. `replicas` must have a change before it is durable."""

    def __init__(self, store: RedisStore, secret: bytes, data: Path, replicas: int = 0) -> None:
        super().__init__(store, secret, data)
        self.replicas = replicas
        self._by: str | None = None
        self._expected: Container[int] | None = None

    @property
    def by(self) -> str:
        """The author of changes: the user of this process, unless the store was opened for another."""
        return self._by or whoami()

    def acting_for(self, by: str, expected: Container[int] | None = None) -> "KeyStore":
        """Returns this store for one change by `by`.

        The change raises OtherRevisionError unless the record has an `expected` revision, 0 if there is none.
        """
        acting = copy(self)
        acting._by, acting._expected = by, expected  # noqa: SLF001 - it is a copy of this store
        return acting

    def check_revision(self, revision: int) -> None:
        if self._expected is not None and revision not in self._expected:
            raise OtherRevisionError(f"the record was changed meanwhile: its revision is {revision} now")

    async def issue(
        self,
        partner: str,
        label: str,
        expires_at: datetime | None,
        terms: Terms = NO_TERMS,
        *,
        test: bool = False,
        more: MoreOfKey = NO_MORE,
        guards: Sequence[Edit] = (),
        draft: KeyDraft | None = None,
    ) -> tuple[str, ApiKey]:
        """Returns a new key as its owner gets it, and as it is stored, which is durable when this returns.

        Raises:
            KeyStoreError: if a record of the `guards` was changed meanwhile.
            ForeignStoreError: if this is not the store that our keys are in.
            StoreUnavailable: if the store does not answer.
        """
        await self.ensure_ours()
        presented, key = self.new_key(partner, label, expires_at, terms, test=test, more=more, draft=draft)
        await self.hand_in([*edits_of(RawKey(), None, key, "issued", by=self.by), *guards], key.key_id)
        return presented, key

    def new_key(
        self,
        partner: str,
        label: str,
        expires_at: datetime | None,
        terms: Terms,
        *,
        test: bool = False,
        more: MoreOfKey = NO_MORE,
        draft: KeyDraft | None = None,
    ) -> tuple[str, ApiKey]:
        """Returns a key as its owner gets it, and as it will be stored."""
        draft = draft or new_draft(now(), test=test)
        presented, parts = draft.parts(self.pepper)
        return presented, ApiKey(
            key_id=parts.key_id,
            partner=partner,
            label=label,
            digest=form.digest(parts.secret, self.pepper),
            created_at=draft.created_at,
            expires_at=expires_at,
            terms=terms,
            test=test,
            pepper=self.fingerprint,
            more=more,
        )

    async def hand_in(self, edits: list[Edit], key_id: str, and_then: str = "") -> None:
        """Makes the `edits` that issue the key `key_id`; they are durable when this returns.

        `and_then` is added to the message if it is unknown whether they were made.

        Raises:
            KeyStoreError: if a record was changed meanwhile.
            StoreUnavailable: if the store does not reply, or refuses.
        """
        try:
            done = await audit.apply(self.redis, edits, replicas=self.replicas)
        except StoreRefused as error:
            raise StoreRefused(f"{error}; nothing was issued", error.why) from None
        except StoreUnavailable as error:
            message = f"{error}; if `forecast keys show {key_id}` finds a key, it has no owner: revoke it{and_then}"
            raise StoreUnavailable(message) from None
        if not done:
            raise BusyRecordError("the record was changed from elsewhere meanwhile; nothing was issued: try again")

    async def change(
        self,
        key_id: str,
        what: str,
        edit: Callable[[ApiKey], ApiKey],
        guards: Sequence[Edit] = (),
    ) -> tuple[ApiKey, ApiKey]:
        """Changes a key by `edit`, with a line in the trail if it differs; returns it before and after, durable.

        Nothing is changed if a record of the `guards` was.

        Raises:
            NoSuchKeyError: if there is no such key.
            ForeignStoreError: if there is no such key because the store lost its keys.
            KeyStoreError: if other clients keep changing the key; and the errors of `edit`.
            StoreUnavailable: if the store does not answer.
        """
        for _ in range(_TRIES):
            raw, before = await self.read(key_id)
            self.check_revision(before.revision)
            after = edit(before)
            if after == before:  # an earlier try may have made it, unconfirmed
                names = (record_name(key_id), more_name(key_id))
                records = {name: record for name, record in zip(names, raw, strict=True) if record is not None}
                await audit.confirm(self.redis, records, self.replicas)
                return before, after
            after = with_next_revision(before, after)
            edits = [*edits_of(raw, before, after, what, by=self.by), *guards]
            if await audit.apply(self.redis, edits, replicas=self.replicas):
                return before, after
        raise BusyRecordError(f"key {key_id} is being changed from elsewhere all the time; try again")

    async def revoke(self, key_id: str) -> ApiKey:
        """Returns the key, revoked and durable; revoking twice keeps the first time. Raises as `change`."""

        def edit(key: ApiKey) -> ApiKey:
            return msgspec.structs.replace(key, revoked_at=key.revoked_at or now())

        return (await self.change(key_id, "revoked", edit))[1]

    async def ensure_ours(self) -> None:
        """Gives a new store its identity. Raises ForeignStoreError if it is not the one that our keys are in."""
        identity = await self.identity()
        if identity is None and not self.known.seen:
            encoded = msgspec.json.encode(self.new_identity())
            await self.redis.call(lambda client: client.set(IDENTITY, encoded, nx=True))
            identity = await self.identity()
        self.check_identity(identity)

    def new_identity(self) -> StoreIdentity:
        # to the microsecond, because the time identifies this store
        return StoreIdentity(pepper_fingerprint=self.fingerprint, created_at=datetime.now(UTC))


def now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def open_key_store(primary: Primary, secret: bytes, data: Path, replicas: int = 0) -> KeyStore:
    """Returns a store for an operator's command, which waits. It is not connected yet.

    Call `redis.stop()` at the end, and first `redis.start()` if it lives long.
    `replicas` must have a change before it counts as durable.
    """
    store = open_store("key store", primary, timeout=_TIMEOUT_SECONDS, retries=1)
    return KeyStore(store, secret, data, replicas)
