"""Reads the records of keys from Redis: `k:{<id>}` and `k:+{<id>}`, the identity under `k:control`. None expires."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from service.keys import pepper
from service.keys.edits import RawKey, readable
from service.keys.errors import (
    DamagedRecordError,
    ForeignStoreError,
    KeyStoreError,
    NoSuchKeyError,
)
from service.keys.record import (
    IDENTITY,
    KEY_RECORD_PREFIX,
    ApiKey,
    DamagedKey,
    Partner,
    Plan,
    StoreIdentity,
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
from service.redis.refusals import WRONG_TYPE

_LISTED_AT_ONCE = 1000  # names


class FoundKey(msgspec.Struct, frozen=True):
    """The result of one look-up. `key` is None if the store has no such record, `identity` if it has no identity."""

    key: ApiKey | None
    identity: StoreIdentity | None


Found = FoundKey | StoreUnavailable | ForeignStoreError  # an error is the reason why the key's state is unknown


class KeyReader:
    """Reads the keys in one Redis. The opener of `redis` stops it.

    `known`: which store is ours, as of the data folder.
    """

    def __init__(self, store: RedisStore, secret: bytes, data: Path) -> None:
        self.redis = store
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

    async def _with_shared(self, key: ApiKey) -> ApiKey:
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
        # live keys may have used up what they share, and test keys must go on
        return key if shared is None or key.test else msgspec.structs.replace(key, shared=shared)

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

    async def read(self, key_id: str) -> tuple[RawKey, ApiKey]:
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

    async def issued(self, key_id: str) -> ApiKey | None:
        """Returns the key; None if there is none. Raises StoreUnavailable."""
        (raw,) = await self.raw([key_id])
        return decoded_key(raw.record, key_id, raw.more)

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


def _identity_of(reply: object) -> StoreIdentity | None:
    """Raises ForeignStoreError if it is damaged."""
    try:
        return decode_record(reply, StoreIdentity, IDENTITY)
    except DamagedRecordError as error:
        raise ForeignStoreError(f"{error}; no key can be judged until you {MEND}") from None


async def every_key(store: KeyReader) -> AsyncIterator[ApiKey | DamagedKey]:
    """Yields every key once, in no order; an unreadable record as DamagedKey.

    Raises:
        StoreUnavailable: if the store does not answer.
    """
    async for names in names_of(store, f"{KEY_RECORD_PREFIX}{{*"):
        ids = [key_id for key_id in map(key_id_of, names) if key_id is not None]
        for key_id, raw in zip(ids, await store.raw(ids), strict=True):
            yield readable(raw, key_id)


async def names_of(store: KeyReader, pattern: str) -> AsyncIterator[list[str]]:
    """Yields the names of records that match `pattern`, each once, in no order. Raises StoreUnavailable."""
    seen: set[str] = set()  # SCAN may return a name twice
    async for found in store.redis.scan(pattern, _LISTED_AT_ONCE):
        names = dict.fromkeys(name.decode("utf-8", "replace") for name in found)
        new = [name for name in names if name not in seen]
        seen.update(new)
        if new:
            yield new
