"""A key store without a server, whose answers a test can hold back, and a clock that a test can turn."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from fakeredis import FakeAsyncRedis
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from service.keys.store import Found, KeyStore, TellFound
from service.redis.client import RedisStore
from service.redis.errors import StoreUnavailable

T = TypeVar("T")
PEPPER = b"pepper of the tests"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class _Double(RedisStore):
    async def connection(self, made: Callable[[Redis], Awaitable[T]]) -> T:
        raise RedisConnectionError("a double has no transport")


class HeldKeyStore(KeyStore):
    """`asked` counts look-ups. While `away`, they fail; while `holding`, each one's answer, as of when it was asked,
    waits in `held` to be let go."""

    def __init__(self, data: Path, pepper: bytes = PEPPER) -> None:
        self.client = FakeAsyncRedis()
        super().__init__(_Double("key store", "redis://fake", self.client), pepper, data)
        self.asked = 0
        self.away = False
        self.holding = False
        self.held: list[asyncio.Future[None]] = []

    def ask(self, key_id: str, told: TellFound) -> None:
        self.asked += 1
        loop = asyncio.get_running_loop()
        if self.away:
            loop.call_soon(told, StoreUnavailable("key store is away"))
            return

        def found(answer: Found) -> None:
            if not self.holding:
                told(answer)
                return
            let_go: asyncio.Future[None] = loop.create_future()
            let_go.add_done_callback(lambda _: told(answer))
            self.held.append(let_go)

        super().ask(key_id, found)
