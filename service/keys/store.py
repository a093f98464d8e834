"""API keys in Redis: one record each under ``k:{<id>}``, and the identity under ``k:control``. No record expires.

Every change is made together with its line in the audit trail (audit.py). Keys are never deleted.
"""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from service.base.terms import Terms
from service.base.whoami import whoami
from service.keys import audit, form, pepper
from service.keys.audit import Change, Edit
from service.keys.errors import ForeignStoreError, KeyStoreError, NoSuchKeyError
from service.keys.record import (
    IDENTITY,
    KEY_RECORD_PREFIX,
    NO_TERMS,
    ApiKey,
    DamagedKey,
    DamagedRecordError,
    KeyState,
    StoreIdentity,
    decode_record,
    decoded_key,
    key_id_of,
    record_name,
)
from service.keys.store_identity import MEND, KnownStore
from service.redis.client import RedisStore
from service.redis.errors import StoreRefused, StoreUnavailable
from service.redis.name_store import checked, gathered
from service.redis.pipelined import value
from service.redis.primary import Primary, open_store
from service.redis.refusals import WRONG_TYPE

# Timeout of a command: longer than the server's for confirming that a change is on disk (`audit.confirmed`).
_TIMEOUT_SECONDS = 3.0
# A try fails if another client changed the key meanwhile.
_TRIES = 10

_LISTED_AT_ONCE = 1000  # names


class FoundKey(msgspec.Struct, frozen=True):
    """The result of one look-up. `key` is None if the store has no such record, `identity` if it has no identity."""

    key: ApiKey | None
    identity: StoreIdentity | None


Found = FoundKey | StoreUnavailable | ForeignStoreError  # an error is the reason why the key's state is unknown


class KeyStore:
    """The keys in one Redis, for one worker or command. The opener of `redis` stops it.

    `memory`: which store is ours, as of the data folder. `replicas` must have a change before it is durable.
    """

    def __init__(self, store: RedisStore, secret: bytes, data: Path, replicas: int = 0) -> None:
        self.redis = store
        self.replicas = replicas
        self.pepper = secret
        self.fingerprint = pepper.fingerprint(secret)
        self.known = KnownStore(data, self.fingerprint)

    async def find(self, key_id: str) -> FoundKey:
        """Returns the record of `key_id` and the identity.

        Raises:
            ForeignStoreError: if the identity is damaged.
            StoreUnavailable: if the store does not reply; DamagedRecordError if the key's record is damaged.
        """
        identity, key = await self._read(IDENTITY, record_name(key_id))
        known = _identity_of(identity)
        return FoundKey(decoded_key(key, key_id), known)

    async def identity(self) -> StoreIdentity | None:
        """Returns the identity. Raises ForeignStoreError if it is damaged, StoreUnavailable."""
        (identity,) = await self._read(IDENTITY)
        return _identity_of(identity)

    async def raw_identity(self) -> tuple[bytes | None, StoreIdentity | None]:
        """Returns the identity's bytes, for replacing it, and its content; None if that is damaged."""
        (raw,) = await self._raw([IDENTITY])
        try:
            return raw, decode_record(raw, StoreIdentity, IDENTITY)
        except DamagedRecordError:
            return raw, None

    async def _read(self, *names: str) -> list[bytes | StoreUnavailable | None]:
        """Returns the bytes of each record, or the error for one of another type."""
        records = await gathered(self.redis.send(name, ("GET", name), value) for name in names)
        for record in records:
            if not (isinstance(record, StoreRefused) and record.text.startswith(WRONG_TYPE)):
                checked(record)
        return records

    def check_identity(self, identity: StoreIdentity | None) -> None:
        """Remembers this store as ours. Raises ForeignStoreError if it is not the one that our keys are in."""
        problem = self.known.problem(identity)
        if problem is not None:
            raise ForeignStoreError(problem)
        if identity is not None:
            self.known.keep(identity)

    async def issue(
        self, partner: str, label: str, expires_at: datetime | None, terms: Terms = NO_TERMS, *, test: bool = False
    ) -> tuple[str, ApiKey]:
        """Returns a new key as its owner gets it, and its record; both are durable when this returns.

        Raises:
            ForeignStoreError: if this is not the store that our keys are in.
            StoreUnavailable: if the store does not answer.
        """
        await self._ensure_control()
        presented, key = self.new_key(partner, label, expires_at, terms, test=test)
        await self.hand_in([edit_of(None, None, key, "issued")], key.key_id)
        return presented, key

    def new_key(
        self, partner: str, label: str, expires_at: datetime | None, terms: Terms, *, test: bool = False
    ) -> tuple[str, ApiKey]:
        """Returns a key as its owner gets it, and its record, which is not stored yet."""
        presented, parts = form.generate(test=test)
        return presented, ApiKey(
            key_id=parts.key_id,
            partner=partner,
            label=label,
            digest=form.digest(parts.secret, self.pepper),
            created_at=now(),
            expires_at=expires_at,
            terms=terms,
            test=test,
            pepper=self.fingerprint,
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
            raise KeyStoreError("the record was changed from elsewhere meanwhile; nothing was issued: try again")

    async def change(
        self, key_id: str, what: str, edit: Callable[[ApiKey], ApiKey], by: str = ""
    ) -> tuple[ApiKey, ApiKey]:
        """Changes a record by `edit`, with a line in the trail if it differs; returns it before and after, durable.

        Raises:
            NoSuchKeyError: if there is no such key.
            ForeignStoreError: if there is no such key because the store lost its keys.
            KeyStoreError: if other clients keep changing the key; and the errors of `edit`.
            StoreUnavailable: if the store does not answer.
        """
        for _ in range(_TRIES):
            raw, before = await self.read(key_id)
            after = edit(before)
            if after == before:  # an earlier try may have made it, unconfirmed
                await audit.confirm(self.redis, {record_name(key_id): raw}, self.replicas)
                return before, after
            after = msgspec.structs.replace(after, revision=before.revision + 1)
            line = edit_of(raw, before, after, what, by=by)
            if await audit.apply(self.redis, [line], replicas=self.replicas):
                return before, after
        raise KeyStoreError(f"key {key_id} is being changed from elsewhere all the time; try again")

    async def read(self, key_id: str) -> tuple[bytes, ApiKey]:
        """Returns the record, as bytes too.

        Raises NoSuchKeyError, ForeignStoreError if the store lost it, StoreUnavailable.
        """
        (raw,) = await self.raw([key_id])
        key = decoded_key(raw, key_id)
        if raw is None or key is None:
            (reply,) = await self._read(record_name(key_id))
            decoded_key(reply, key_id)  # raises for a record of another type, for which MGET replies nil
            raise await self.missing(key_id)
        return raw, key

    async def missing(self, key_id: str) -> KeyStoreError:
        """Returns the error for a missing key: it may never have existed, or the store lost its keys."""
        loss = await self.loss()
        return (
            ForeignStoreError(loss)
            if loss
            else NoSuchKeyError(f"no key {key_id}; `forecast keys list` shows those there are")
        )

    async def loss(self) -> str | None:
        """Returns why this is not the store that our keys are in; None if it is. Raises StoreUnavailable."""
        try:
            return self.known.problem(await self.identity())
        except ForeignStoreError as error:
            return str(error)

    async def revoke(self, key_id: str, by: str = "") -> ApiKey:
        """Returns the record, revoked and durable; revoking twice keeps the first time. Raises as `change`."""

        def edit(key: ApiKey) -> ApiKey:
            return msgspec.structs.replace(key, revoked_at=key.revoked_at or now())

        return (await self.change(key_id, "revoked", edit, by))[1]

    async def raw(self, key_ids: list[str]) -> list[bytes | None]:
        """Returns the bytes of each record, None if there is none. Raises StoreUnavailable."""
        return await self._raw([record_name(key_id) for key_id in key_ids]) if key_ids else []

    async def _raw(self, names: list[str]) -> list[bytes | None]:
        records: Any = await self.redis.call(lambda client: client.mget(names))
        if not isinstance(records, list) or len(records) != len(names):
            raise StoreUnavailable(f"{self.redis.name}: records were asked for, and something else was answered")
        return records

    async def _ensure_control(self) -> None:
        identity = await self.identity()
        if identity is None and not self.known.seen:
            encoded = msgspec.json.encode(self.new_identity())
            await self.redis.call(lambda client: client.set(IDENTITY, encoded, nx=True))
            identity = await self.identity()
        self.check_identity(identity)

    def new_identity(self) -> StoreIdentity:
        # to the microsecond, because the time identifies this store
        return StoreIdentity(pepper_fingerprint=self.fingerprint, created_at=datetime.now(UTC))


def _identity_of(reply: object) -> StoreIdentity | None:
    """Raises ForeignStoreError if it is damaged."""
    try:
        return decode_record(reply, StoreIdentity, IDENTITY)
    except DamagedRecordError as error:
        raise ForeignStoreError(f"{error}; no key can be judged until you {MEND}") from None


def edit_of(
    raw: bytes | None, before: ApiKey | None, after: ApiKey, what: str, rotated: str | None = None, by: str = ""
) -> Edit:
    """Returns the edit of one record, with its line. `by` made it; the default is the user of this process."""
    change = Change(
        what=what,
        by=by or whoami(),
        key_id=after.key_id,
        partner=after.partner,
        test=after.test,
        before=None if before is None else KeyState.of(before),
        after=KeyState.of(after),
        revision=after.revision,
        rotated=rotated,
    )
    return Edit(record_name(after.key_id), raw, msgspec.json.encode(after), change)


def now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def open_key_store(primary: Primary, secret: bytes, data: Path, replicas: int = 0) -> KeyStore:
    """Returns a store for an operator's command, which waits. It is not connected yet.

    Call `redis.stop()` at the end, and first `redis.start()` if it lives long.
    `replicas` must have a change before it counts as durable.
    """
    store = open_store("key store", primary, timeout=_TIMEOUT_SECONDS, retries=1)
    return KeyStore(store, secret, data, replicas)


async def every_key(store: KeyStore) -> AsyncIterator[ApiKey | DamagedKey]:
    """Yields every key once, in no order; an unreadable record as DamagedKey.

    Raises:
        StoreUnavailable: if the store does not answer.
    """
    seen: set[str] = set()  # SCAN may return a name twice
    async for names in store.redis.scan(f"{KEY_RECORD_PREFIX}{{*", _LISTED_AT_ONCE):
        ids = dict.fromkeys(key_id_of(name.decode("utf-8", "replace")) for name in names)
        new = [key_id for key_id in ids if key_id is not None and key_id not in seen]
        seen.update(new)
        for key_id, record in zip(new, await store.raw(new), strict=True):
            yield readable(record, key_id)


def readable(record: bytes | None, key_id: str) -> ApiKey | DamagedKey:
    try:
        key = decoded_key(record, key_id)
    except DamagedRecordError as error:
        return DamagedKey(key_id, str(error))
    return DamagedKey(key_id, "it is no record of a key") if key is None else key
