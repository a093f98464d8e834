"""Usage without a server: a store whose replies a test can lose, and one worker's parts around it."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import date
from pathlib import Path
from typing import Literal, TypeVar, cast

from fakeredis import FakeAsyncRedis, FakeServer
from redis.asyncio import Redis

from service.base.tasks import hold_until_done
from service.quota.flusher import UsageFlusher
from service.quota.quotas import QuotaGuard
from service.quota.report import HourRow, UsageReport, UsageRow
from service.quota.spool import FOLDER, Spool
from service.quota.usage import UsageCounters
from service.quota.usage_store import _SCRIPT, UsageStore
from service.redis.client import RedisStore
from service.redis.errors import StoreUnavailable
from tests.support.key_store import Clock
from tests.support.redis_double import DoubledStore, Wire

T = TypeVar("T")
Fate = Literal["ok", "reply lost", "not run", "hangs"]

# 2026-11-20T12:00:00Z
NOON = 1795176000.0


class LossyStore(DoubledStore):
    """`fates` says what becomes of the calls of each of the next turns; after them all goes well, unless it is `away`.

    It takes `seconds` for each way, there and back. `calls` counts the turns. `spoiled` changes what replies are.
    """

    def __init__(self, client: Redis) -> None:
        super().__init__(client, "key store")
        self._data.script_load(_SCRIPT.text)
        self.fates: deque[Fate] = deque()
        self.away = False
        self.calls = 0
        self.seconds = 0.0
        self.spoiled: Callable[[bytes], bytes] = lambda replies: replies
        self._travelling: set[asyncio.Task[None]] = set()

    async def call(self, command: Callable[[Redis], Awaitable[T]]) -> T:
        if self.away:
            raise StoreUnavailable("key store: away")
        return await super().call(command)

    def arrived(self, wire: Wire) -> None:
        self.calls += 1
        fate = self.fates.popleft() if self.fates else "ok"
        travelling = asyncio.create_task(self._travel(wire, "not run" if self.away else fate))
        hold_until_done(travelling, self._travelling)

    def failed(self, error: Exception, *, answered: bool) -> StoreUnavailable:
        """Its circuit stays closed."""
        return super().failed(error, answered=True) if answered else StoreUnavailable(f"{self.name}: {error}")

    async def _travel(self, wire: Wire, fate: Fate) -> None:
        if fate == "hangs":
            await asyncio.sleep(1)
        if self.seconds:
            await asyncio.sleep(self.seconds)
        if fate in {"ok", "reply lost"}:
            replies = self.spoiled(self.executed(wire))
            if self.seconds:
                await asyncio.sleep(self.seconds)
            if fate == "ok":
                wire.arrive(replies)
                return
        wire.connection.connection_lost(ConnectionResetError("reset"))


class UsageWorker:
    """What one worker has for usage, on the server of `client`; `clock` is the time of day.

    On a real server, `redis` loses nothing.
    """

    def __init__(self, client: Redis, data: Path, clock: Clock | None = None, workers: int = 1) -> None:
        self.clock = clock or noon()
        self.client = client
        is_double = isinstance(client, FakeAsyncRedis)
        real = RedisStore("key store", "redis://real", client)
        self.redis = LossyStore(client) if is_double else cast("LossyStore", real)
        self.store = UsageStore(self.redis)
        self.counters = UsageCounters(self.clock)
        self.quotas = QuotaGuard(self.counters, self.store, lambda: workers, self.clock)
        self.flusher = UsageFlusher(self.counters, self.store, Spool(data), self.quotas, self.clock)

    async def rows(self, key_id: str) -> list[UsageRow]:
        """What is stored of 2026."""
        return await self._report().whole([key_id], date(2026, 1, 1), date(2026, 12, 31))

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
