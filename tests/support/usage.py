"""Usage without a server: a store whose replies a test can lose, and one worker's parts around it."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import date
from pathlib import Path
from typing import Any, Literal, TypeVar

from fakeredis import FakeAsyncRedis, FakeServer
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from service.quota.flusher import UsageFlusher
from service.quota.quotas import QuotaGuard
from service.quota.report import HourRow, UsageReport, UsageRow
from service.quota.spool import FOLDER, Spool
from service.quota.usage import UsageCounters
from service.quota.usage_store import UsageStore
from service.redis.client import RedisStore
from service.redis.errors import StoreUnavailable
from tests.support.key_store import Clock

Fate = Literal["ok", "reply lost", "not run", "hangs"]
T = TypeVar("T")

# 2026-11-20T12:00:00Z
NOON = 1795176000.0


class LossyStore(RedisStore):
    """`fates` says what becomes of each of the next calls; after them all goes well, unless it is `away`.

    It takes `seconds` for each way, there and back. All commands go by the client: it takes no more connections.
    """

    def __init__(self, client: Redis) -> None:
        super().__init__("key store", "redis://double", client)
        self.fates: deque[Fate] = deque()
        self.away = False
        self.calls = 0
        self.seconds = 0.0

    async def call(self, command: Callable[[Redis], Awaitable[T]]) -> T:
        self.calls += 1
        fate = self.fates.popleft() if self.fates else "ok"
        if fate == "hangs":
            await asyncio.sleep(1)
        if self.away or fate == "hangs" or fate == "not run":
            raise StoreUnavailable("key store: away")
        await self._travel()
        reply = await super().call(command)
        await self._travel()
        if fate == "reply lost":
            raise StoreUnavailable("key store: Timeout reading")
        return reply

    async def connection(self, made: Callable[[Redis], Awaitable[Any]]) -> Any:
        raise RedisConnectionError("no more connections")

    async def _travel(self) -> None:
        if self.seconds:
            await asyncio.sleep(self.seconds)


class UsageWorker:
    """What one worker has for usage, on the server of `client`; `clock` is the time of day."""

    def __init__(self, client: Redis, data: Path, clock: Clock | None = None, workers: int = 1) -> None:
        self.clock = clock or noon()
        self.client = client
        self.redis = LossyStore(client)
        self.store = UsageStore(self.redis)
        self.counters = UsageCounters(self.clock)
        self.quotas = QuotaGuard(self.counters, self.store, lambda: workers, self.clock)
        self.flusher = UsageFlusher(self.counters, self.store, Spool(data), self.quotas, self.clock)

    async def rows(self, key_id: str) -> list[UsageRow]:
        """What is stored of 2026."""
        return await self._report().of_key(key_id, date(2026, 1, 1), date(2026, 12, 31))

    async def hours(self, key_id: str) -> list[HourRow]:
        """What is stored by hour of the end of 2026."""
        return await self._report().hours_of_key(key_id, date(2026, 11, 1), date(2026, 12, 31))

    def _report(self) -> UsageReport:
        return UsageReport(RedisStore("key store", "redis://double", self.client))


def noon() -> Clock:
    clock = Clock()
    clock.now = NOON
    return clock


def double(server: FakeServer | None = None) -> FakeAsyncRedis:
    return FakeAsyncRedis(server=server or FakeServer())


async def stored(worker: UsageWorker, key_id: str = "a") -> int:
    """How many answers of `key_id` are in the store."""
    return sum(row.answered for row in await worker.rows(key_id))


def count(worker: UsageWorker, *key_ids: str) -> None:
    """An answer for each of `key_ids`, or for `a`."""
    for key_id in key_ids or ("a",):
        worker.counters.count(key_id, "forecast", "answered")


def spool_files(data: Path) -> list[str]:
    """How the names of the files in the spool end."""
    return sorted(path.name.lstrip(".").partition(".")[2] for path in (data / FOLDER).glob("*"))
