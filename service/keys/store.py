"""API keys in Redis: records under ``k:{<id>}`` and ``k:+{<id>}``, the identity under ``k:control``. None expires.

Every change is made together with its line in the audit trail (audit.py). Keys are never deleted.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from service.base.terms import Terms
from service.keys import audit, form, pepper
from service.keys.audit import Edit
from service.keys.edits import RawKey, edits_of, readable, with_next_revision
from service.keys.errors import ForeignStoreError, KeyStoreError, NoSuchKeyError
from service.keys.record import (
    IDENTITY,
    KEY_RECORD_PREFIX,
    NO_MORE,
    NO_TERMS,
    DamagedKey,
    DamagedRecordError,
    MoreOfKey,
    Partner,
    Plan,
    StoreIdentity,
    WholeKey,
    decode_record,
    decoded_key,
    key_id_of,
    more_name,
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

    key: WholeKey | None
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
        """Returns the key `key_id` and the identity.

        Raises:
            ForeignStoreError: if the identity is damaged.
            StoreUnavailable: if the store does not reply; DamagedRecordError if a record of the key is damaged.
        """
        identity, key, more = await self._read(IDENTITY, record_name(key_id), more_name(key_id))
        known, found = _identity_of(identity), decoded_key(key, key_id, more)
        return FoundKey(found and await self._with_shared(found), known)

    async def _with_shared(self, key: WholeKey) -> WholeKey:
        """Returns the key with its plan and its partner's limits. Raises as `find`, also if the plan is missing."""
        partner_name = Partner.record_name(key.partner)
        if key.more.plan is None:
            (raw,) = await self._read(partner_name)
        else:
            name = Plan.record_name(key.more.plan)
            raw, raw_plan = await self._read(partner_name, name)
            plan = decode_record(raw_plan, Plan, name)
            if plan is None:
                raise DamagedRecordError(f"the record `{name}` of its plan is missing")
            key = msgspec.structs.replace(key, terms=key.terms.over(plan.terms), plan=plan)
        shared = decode_record(raw, Partner, partner_name)
        return key if shared is None else msgspec.structs.replace(key, shared=shared)

    async def identity(self) -> StoreIdentity | None:
        """Returns the identity. Raises ForeignStoreError if it is damaged, StoreUnavailable."""
        (identity,) = await self._read(IDENTITY)
        return _identity_of(identity)

    async def raw_identity(self) -> tuple[bytes | None, StoreIdentity | None]:
        """Returns the identity's bytes, for replacing it, and its content; None if that is damaged."""
        (raw,) = await self.raw_records([IDENTITY])
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
        self,
        partner: str,
        label: str,
        expires_at: datetime | None,
        terms: Terms = NO_TERMS,
        *,
        test: bool = False,
        more: MoreOfKey = NO_MORE,
        guards: Sequence[Edit] = (),
    ) -> tuple[str, WholeKey]:
        """Returns a new key as its owner gets it, and as it is stored, which is durable when this returns.

        Raises:
            KeyStoreError: if a record of the `guards` was changed meanwhile.
            ForeignStoreError: if this is not the store that our keys are in.
            StoreUnavailable: if the store does not answer.
        """
        await self.ensure_ours()
        presented, key = self.new_key(partner, label, expires_at, terms, test=test, more=more)
        await self.hand_in([*edits_of(RawKey(), None, key, "issued"), *guards], key.key_id)
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
    ) -> tuple[str, WholeKey]:
        """Returns a key as its owner gets it, and as it will be stored."""
        presented, parts = form.generate(test=test)
        return presented, WholeKey(
            key_id=parts.key_id,
            partner=partner,
            label=label,
            digest=form.digest(parts.secret, self.pepper),
            created_at=now(),
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
            raise KeyStoreError("the record was changed from elsewhere meanwhile; nothing was issued: try again")

    async def change(
        self,
        key_id: str,
        what: str,
        edit: Callable[[WholeKey], WholeKey],
        by: str = "",
        guards: Sequence[Edit] = (),
    ) -> tuple[WholeKey, WholeKey]:
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
            after = edit(before)
            if after == before:  # an earlier try may have made it, unconfirmed
                stored = dict(zip((record_name(key_id), more_name(key_id)), raw, strict=True))
                records = {name: record for name, record in stored.items() if record is not None}
                await audit.confirm(self.redis, records, self.replicas)
                return before, after
            after = with_next_revision(before, after)
            edits = [*edits_of(raw, before, after, what, by=by), *guards]
            if await audit.apply(self.redis, edits, replicas=self.replicas):
                return before, after
        raise KeyStoreError(f"key {key_id} is being changed from elsewhere all the time; try again")

    async def read(self, key_id: str) -> tuple[RawKey, WholeKey]:
        """Returns the key, as bytes too.

        Raises NoSuchKeyError, ForeignStoreError if the store lost it, StoreUnavailable.
        """
        (raw,) = await self.raw([key_id])
        key = decoded_key(raw.record, key_id, raw.more)
        if key is None:
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

    async def revoke(self, key_id: str, by: str = "") -> WholeKey:
        """Returns the key, revoked and durable; revoking twice keeps the first time. Raises as `change`."""

        def edit(key: WholeKey) -> WholeKey:
            return msgspec.structs.replace(key, revoked_at=key.revoked_at or now())

        return (await self.change(key_id, "revoked", edit, by))[1]

    async def raw(self, key_ids: list[str]) -> list[RawKey]:
        """Returns the bytes of each key. Raises StoreUnavailable."""
        if not key_ids:
            return []
        records = await self.raw_records([name(key_id) for name in (record_name, more_name) for key_id in key_ids])
        return [RawKey(*both) for both in zip(records[: len(key_ids)], records[len(key_ids) :], strict=True)]

    async def raw_records(self, names: list[str]) -> list[bytes | None]:
        """Returns the bytes of each record. Raises StoreUnavailable."""
        records: Any = await self.redis.call(lambda client: client.mget(names))
        if not isinstance(records, list) or len(records) != len(names):
            raise StoreUnavailable(f"{self.redis.name}: records were asked for, and something else was answered")
        return records

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


def _identity_of(reply: object) -> StoreIdentity | None:
    """Raises ForeignStoreError if it is damaged."""
    try:
        return decode_record(reply, StoreIdentity, IDENTITY)
    except DamagedRecordError as error:
        raise ForeignStoreError(f"{error}; no key can be judged until you {MEND}") from None


def now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def open_key_store(primary: Primary, secret: bytes, data: Path, replicas: int = 0) -> KeyStore:
    """Returns a store for an operator's command, which waits. It is not connected yet.

    Call `redis.stop()` at the end, and first `redis.start()` if it lives long.
    `replicas` must have a change before it counts as durable.
    """
    store = open_store("key store", primary, timeout=_TIMEOUT_SECONDS, retries=1)
    return KeyStore(store, secret, data, replicas)


async def every_key(store: KeyStore) -> AsyncIterator[WholeKey | DamagedKey]:
    """Yields every key once, in no order; an unreadable record as DamagedKey.

    Raises:
        StoreUnavailable: if the store does not answer.
    """
    seen: set[str] = set()  # SCAN may return a name twice
    async for names in store.redis.scan(f"{KEY_RECORD_PREFIX}{{*", _LISTED_AT_ONCE):
        ids = dict.fromkeys(key_id_of(name.decode("utf-8", "replace")) for name in names)
        new = [key_id for key_id in ids if key_id is not None and key_id not in seen]
        seen.update(new)
        for key_id, raw in zip(new, await store.raw(new), strict=True):
            yield readable(raw, key_id)
