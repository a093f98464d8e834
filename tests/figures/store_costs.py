"""A server's own time for beats, usage and leases, for the page "Scaling": ``python -m tests.figures.store_costs``.

A beat returns the records of all instances, so a second of N instances costs N beats of N records. The time is that of
INFO commandstats, which a busy machine changes little.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from service.base.terms import Rate
from service.instance.peers import BEAT_SECONDS
from service.instance.registry import Peer, beat
from service.quota.lease_store import LeaseStore
from service.quota.names import DAY_SECONDS
from service.quota.usage import UsageCounters
from service.quota.usage_store import UsageStore
from service.redis.client import RedisStore
from service.redis.connections import open_client
from tests.support.valkey import ValkeyProcess

_SIZES = (10, 100, 300, 1000)
_BEATS = 300
_KEYS, _ROUNDS = 100, 30
_SCRIPTS = ("cmdstat_eval", "cmdstat_evalsha")


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def peer(number: int) -> Peer:
    host = f"forecast-{number}.example.com"
    return Peer(f"{number:012x}", host, f"http://10.0.{number // 250}.{number % 250}:8001", 8)


async def cost(client: Redis, act: Callable[[], Awaitable[object]]) -> tuple[float, int]:
    """The microseconds that the server takes for a script of `act`, and the bytes of its reply."""
    await client.config_resetstat()
    await act()
    stats: Any = await client.info("stats")
    commands: dict[str, Any] = await client.info("commandstats")
    scripts = [commands[name] for name in _SCRIPTS if name in commands]
    calls = sum(one["calls"] for one in scripts)
    return sum(one["usec"] for one in scripts) / calls, stats["total_net_output_bytes"] // calls


async def beats(client: Redis, store: RedisStore) -> None:
    say("instances  µs for a beat  bytes of its reply  of one core, at a beat a second")
    known = 0
    for size in _SIZES:
        for number in range(known, size):
            await beat(store, peer(number))
        known = size

        async def act(size: int = size) -> None:
            for number in range(_BEATS):
                assert len((await beat(store, peer(number % size))).peers) == size

        used, sent = await cost(client, act)
        say(f"{size:9,}  {used:13,.0f}  {sent:18,}  {size * used / 1e6 / BEAT_SECONDS:31.1%}")


async def usage(client: Redis, store: RedisStore) -> None:
    counters, stores = UsageCounters(), UsageStore(store)
    today = int(time.time() // DAY_SECONDS)

    async def act() -> None:
        for _ in range(_ROUNDS):
            for number in range(_KEYS):
                counters.count(f"key{number}", "forecast", "answered", 500)
            batches = counters.to_send()
            async for (key_id, batch), _ in stores.add_all(counters.worker_id, batches, today, counters.kept):
                counters.confirm(key_id, batch.number)

    used, _ = await cost(client, act)
    say(f"a batch of usage of one key: {used:.0f} µs")


async def leases(client: Redis, store: RedisStore) -> None:
    leased = LeaseStore(store)

    async def act() -> None:
        for _ in range(_ROUNDS):
            await asyncio.gather(*(leased.lease(f"key{number}", Rate(1000, 1, 100), 10, 1) for number in range(_KEYS)))

    used, _ = await cost(client, act)
    say(f"a lease: {used:.0f} µs")


async def main() -> None:
    with tempfile.TemporaryDirectory(prefix="pf") as folder:
        server = ValkeyProcess(Path(folder) / "store", appendonly=True).start()
        try:
            client = open_client(server.url, timeout=30)
            store = RedisStore("store", server.url, client)
            await store.start()
            for measure in (beats, usage, leases):
                await measure(client, store)
            await store.stop()
        finally:
            server.kill()


if __name__ == "__main__":
    asyncio.run(main())
