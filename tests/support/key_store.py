"""A key store without a server, whose answers a test can hold back, and a clock that a test can turn."""

import asyncio
import secrets
from pathlib import Path

from fakeredis import FakeAsyncRedis

from service.keys import backup, form
from service.keys.backup import Dump
from service.keys.errors import ForeignStoreError
from service.keys.reader import FoundKey
from service.keys.record import ApiKey
from service.keys.restore import Restore, Restored
from service.keys.store import KeyStore
from service.redis.errors import StoreUnavailable
from tests.support.redis_double import DoubledStore

PEPPER = b"pepper of the tests"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def found(store: KeyStore, key_id: str) -> ApiKey:
    key = (await store.find(key_id)).key
    assert key is not None
    return key


def any_key(*, test: bool = False) -> tuple[str, form.PresentedKey]:
    """A well-formed key that no store has, and its parts."""
    return form.assembled(form.new_id(), secrets.randbits(256), test=test)


def parsed(presented: str) -> form.PresentedKey:
    parts = form.parse(presented)
    assert parts is not None
    return parts


async def dumped(store: KeyStore) -> list[bytes]:
    """The lines of a backup."""
    return [line async for line in Dump(store)]


async def imported(store: KeyStore, lines: list[bytes], *, dry_run: bool = False) -> Restored:
    return await Restore(store, backup.check(lines, PEPPER), lambda: lines, dry_run=dry_run).run()


class HeldKeyStore(KeyStore):
    """`asked` counts look-ups. While `away`, they fail; while `holding`, each one's answer, as of when it was asked,
    waits in `held` to be let go."""

    redis: DoubledStore

    def __init__(self, data: Path, pepper: bytes = PEPPER) -> None:
        self.client = FakeAsyncRedis()
        super().__init__(DoubledStore(self.client, "key store"), pepper, data)
        self.asked = 0
        self.away = False
        self.holding = False
        self.held: list[asyncio.Future[None]] = []

    async def find(self, key_id: str) -> FoundKey:
        self.asked += 1
        if self.away:
            raise StoreUnavailable("key store is away")
        found: FoundKey | Exception
        try:
            found = await super().find(key_id)
        except (StoreUnavailable, ForeignStoreError) as error:
            found = error
        if self.holding:
            let_go: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.held.append(let_go)
            await let_go
        if isinstance(found, Exception):
            raise found
        return found
