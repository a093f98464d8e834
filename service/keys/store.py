"""API keys in Redis: one record each under ``k:{<id>}``, and the sentinel under ``k:control``. No record expires."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec
from redis.asyncio import Redis
from redis.asyncio.client import Pipeline
from redis.exceptions import ResponseError

from service.keys import form, pepper
from service.keys.record import ApiKey, Control
from service.redis.client import RedisStore, StoreUnavailable

PREFIX = "k:"
CONTROL = "k:control"
# In the data folder: keys were seen in the store, so an empty one is a loss and not a beginning.
SEEN = "key-store-seen"

_WAIT_MILLISECONDS = 2000

R = TypeVar("R", ApiKey, Control)


class KeyStoreError(Exception):
    """The operator asked for what cannot be done. The message is one line that says what to do."""


class ForeignStoreError(KeyStoreError):
    """The store is empty where keys should be, or its keys were made with another pepper (Decision 10)."""


class Found(msgspec.Struct, frozen=True):
    """`key` is None where the store has no such record."""

    key: ApiKey | None
    control: Control | None


def record_name(key_id: str) -> str:
    return f"{PREFIX}{{{key_id}}}"


def key_id_of(name: str) -> str | None:
    return name[3:-1] if name.startswith("k:{") and name.endswith("}") else None


class KeyStore:
    """`data` is the data folder that remembers whether keys were ever seen; `secret` is the pepper."""

    def __init__(self, store: RedisStore, secret: bytes, data: Path) -> None:
        self._store = store
        self._pepper = secret
        self._fingerprint = pepper.fingerprint(secret)
        self._seen = data / SEEN
        self._known = self._seen.exists()

    async def find(self, key_id: str) -> Found:
        """The record of `key_id` and the sentinel, in one round trip.

        Raises:
            StoreUnavailable: if the store does not answer, or answers with something that is no record.
        """

        async def read(client: Redis) -> list[bytes | None]:
            async with client.pipeline(transaction=False) as pipeline:
                pipeline.get(record_name(key_id))
                pipeline.get(CONTROL)
                replies: list[bytes | None] = await pipeline.execute()
                return replies

        key, control = await self._store.call(read)
        return Found(_decoded(key, ApiKey), _decoded(control, Control))

    def check_control(self, control: Control | None) -> None:
        """Raises ForeignStoreError if this is not the store that our keys are in."""
        if control is None:
            if self._known:
                raise ForeignStoreError(
                    "the key store is empty, but keys were in it before: restore its backup, or accept the loss with "
                    "`forecast keys adopt-store`"
                )
            return
        if control.pepper_fingerprint != self._fingerprint:
            raise ForeignStoreError(
                "the keys in the store were made with another pepper: set FORECAST_KEYS_PEPPER (or restore the file "
                "`pepper` of the data folder), or give up those keys with `forecast keys adopt-store`"
            )
        if not self._known:
            self._known = True
            self._remember()

    async def issue(self, partner: str, label: str, expires_at: datetime | None) -> tuple[str, ApiKey]:
        """A new key as its owner gets it, and its record; both are durable when this returns.

        Raises:
            ForeignStoreError: if this is not the store that our keys are in.
            StoreUnavailable: if the store does not answer.
        """
        await self._ensure_control()
        presented, parts = form.generate()
        key = ApiKey(
            key_id=parts.key_id,
            partner=partner,
            label=label,
            digest=form.digest(parts.secret, self._pepper),
            created_at=_now(),
            expires_at=expires_at,
        )
        encoded = msgspec.json.encode(key)
        created = await self._store.call(lambda client: client.set(record_name(key.key_id), encoded, nx=True))
        if not created:  # 62 ** 12 ids: a defect of the random source, not bad luck
            raise KeyStoreError("a key with the new id exists already; nothing was issued")
        await self._make_durable()
        return presented, key

    async def revoke(self, key_id: str) -> ApiKey:
        """The record, revoked and durable; revoking twice keeps the first time.

        Raises:
            KeyStoreError: if there is no such key.
            StoreUnavailable: if the store does not answer.
        """
        name = record_name(key_id)
        revoked: list[ApiKey] = []

        async def change(pipeline: Pipeline) -> None:
            key = _decoded(await pipeline.get(name), ApiKey)
            if key is None:
                raise KeyStoreError(f"no key {key_id}; `forecast keys list` shows those there are")
            key = msgspec.structs.replace(key, revoked_at=key.revoked_at or _now())
            revoked[:] = [key]
            pipeline.multi()  # type: ignore[no-untyped-call]
            pipeline.set(name, msgspec.json.encode(key))

        await self._store.call(lambda client: client.transaction(change, name))
        await self._make_durable()
        return revoked[0]

    async def all(self) -> AsyncIterator[ApiKey]:
        """Every key once, in no order. Raises StoreUnavailable."""
        cursor = 0
        seen: set[bytes] = set()  # SCAN may return a name twice
        while True:
            cursor, names = await self._store.call(
                lambda client, at=cursor: client.scan(at, match=f"{PREFIX}{{*", count=1000)  # type: ignore[misc]
            )
            new = [name for name in names if name not in seen]
            seen.update(new)
            if new:
                records = await self._store.call(lambda client, some=new: client.mget(some))  # type: ignore[misc]
                for record in records:
                    key = _decoded(record, ApiKey)
                    if key is not None:
                        yield key
            if not cursor:
                return

    async def adopt(self) -> None:
        """Makes this store ours, whatever was known of it before: keys made with another pepper are void."""
        await self._store.call(lambda client: client.set(CONTROL, self._new_control()))
        await self._make_durable()
        self._known = True
        self._remember()

    async def _ensure_control(self) -> None:
        control = (await self.find("none")).control
        if control is None and not self._known:
            await self._store.call(lambda client: client.set(CONTROL, self._new_control(), nx=True))
            control = (await self.find("none")).control
        self.check_control(control)

    def _new_control(self) -> bytes:
        return msgspec.json.encode(Control(pepper_fingerprint=self._fingerprint, created_at=_now()))

    async def _make_durable(self) -> None:
        """Waits until the server's append-only file has it on disk, where it has one and can say so (WAITAOF)."""

        async def wait(client: Redis) -> None:
            try:
                reply = await client.execute_command("WAITAOF", 1, 0, _WAIT_MILLISECONDS)  # type: ignore[no-untyped-call]
            except ResponseError:
                return  # older than 7.2, or without the file: then its own configuration decides
            if not reply[0]:
                raise StoreUnavailable("key store: the change is made, but its disk has not confirmed it; check it")

        await self._store.call(wait)

    def _remember(self) -> None:
        try:
            self._seen.parent.mkdir(parents=True, exist_ok=True)
            self._seen.touch()
        except OSError:
            return  # a read-only data folder: the process still remembers


def _decoded(data: bytes | str | None, kind: type[R]) -> R | None:
    if data is None:
        return None
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError as error:
        raise StoreUnavailable(f"the key store holds a damaged record: {error}") from None


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
