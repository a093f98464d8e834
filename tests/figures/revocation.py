"""How long a revoked key still opens anything: from the start of `KeyStore.revoke` to the last 200, over four workers.

``python -m tests.figures.revocation [TRIALS]`` (200 by default). Each trial is a key of its own, asked for on
a connection to every worker until all of them have refused it for a while. Three kinds of keys:

- hot: asked for all the time;
- idle: not asked for in the 4 s before it is revoked, and all the time from then on;
- asleep: revoked right after it was verified, and not asked for in the 4 to 5 s that follow.

First with push, then with a Redis user to whom the server refuses CLIENT TRACKING, so that no worker is ever told
anything; there hot keys are at a random point of the 3 s between two checks. The last 200 counts when it is received; a
key that nobody is answered 200 for after the start counts as 0.
"""

import asyncio
import random
import sys
import time
from collections import Counter
from typing import Literal

import msgspec
import uvloop
from redis.asyncio import Redis

from service.keys.store import KeyStore
from tests.figures.common import Connection, Site, milliseconds, request, say, site, spread, wait_for_workers
from tests.support.instance import serving

WORKERS = 4
IDLE_SECONDS = 4.0
WAIT_AFTER_SECONDS = 5.0
# Refused for so long everywhere, a key is believed to be.
QUIET_SECONDS = 0.3
GIVE_UP_SECONDS = 70.0
# Between an answer and the next question of a connection: without it the machine measures how full it is.
PAUSE_SECONDS = 0.02
# At most so long a hot key is asked for before it is revoked.
SETTLE_SECONDS = 3.2
AT_ONCE = 10
# Every right but the one to be told.
UNPUSHED_USER = ("ACL", "SETUSER", "unpushed", "on", ">password", "~*", "+@all", "-client|tracking")

Kind = Literal["hot", "idle", "asleep"]


class Seen(msgspec.Struct, frozen=True):
    """Seconds since revoking began: when it returned, and when the last 200 came."""

    returned: float
    last: float


class Watch:
    """Connections that ask for one key over and over."""

    def __init__(self, connections: list[Connection], key: str) -> None:
        self.last = 0.0
        self.statuses: Counter[int] = Counter()
        self._connections = connections
        self._request = request(key)
        self._opened: set[Connection] = set()
        self._refused: set[Connection] = set()
        self._asking: list[asyncio.Task[None]] = []
        self._enough = False

    async def once(self) -> None:
        """Every worker verifies the key."""
        for connection in self._connections:
            self._saw(connection, await connection.ask(self._request))
        assert self._opened == set(self._connections), self.statuses

    def start(self) -> None:
        self._asking = [asyncio.create_task(self._ask(connection)) for connection in self._connections]

    async def refused(self, since: float) -> None:
        """Returns when every connection was refused, and nothing else happened for a while."""
        everywhere = set(self._connections)
        while self._refused != everywhere or time.perf_counter() - max(since, self.last) < QUIET_SECONDS:
            assert time.perf_counter() - since < GIVE_UP_SECONDS, f"still not refused: {self.statuses}"
            await asyncio.sleep(0.01)
        self._enough = True
        await asyncio.gather(*self._asking)

    async def _ask(self, connection: Connection) -> None:
        while not self._enough:
            self._saw(connection, await connection.ask(self._request))
            await asyncio.sleep(PAUSE_SECONDS * random.uniform(0.5, 1.5))

    def _saw(self, connection: Connection, status: int) -> None:
        self.statuses[status] += 1
        if status == 200:
            self.last = time.perf_counter()
            self._opened.add(connection)
            self._refused.discard(connection)
        else:
            self._refused.add(connection)


async def trial(store: KeyStore, kind: Kind, connections: list[Connection]) -> Seen:
    presented, key = await store.issue("acme", "", None)
    watch = Watch(connections, presented)
    await watch.once()
    if kind == "hot":
        watch.start()
        await asyncio.sleep(random.uniform(0.05, SETTLE_SECONDS))
    elif kind == "idle":
        await asyncio.sleep(IDLE_SECONDS)
        watch.start()
    began = time.perf_counter()
    await store.revoke(key.key_id)
    returned = time.perf_counter()
    if kind == "asleep":
        await asyncio.sleep(random.uniform(IDLE_SECONDS, WAIT_AFTER_SECONDS - 0.02))
        watch.start()
    await watch.refused(returned)
    assert watch.statuses.keys() <= {200, 401}, watch.statuses
    return Seen(returned - began, max(0.0, watch.last - began))


async def measure(ground: Site, base: str, pids: list[int], kind: Kind, trials: int) -> None:
    """Several keys at once, each on one connection to every worker. New ones: idle ones are closed after a while."""
    by_worker = await spread(base, pids, AT_ONCE)
    left = iter(range(trials))

    async def run(store: KeyStore, group: list[Connection]) -> list[Seen]:
        return [await trial(store, kind, group) for _ in left]

    async with ground.store() as store:
        groups = [list(group) for group in zip(*by_worker.values(), strict=True)]
        found = [seen for some in await asyncio.gather(*(run(store, group) for group in groups)) for seen in some]
    last, returned = ([getattr(seen, name) for seen in found] for name in ("last", "returned"))
    say(f"  {kind}, {len(found)} keys: the last 200 after {milliseconds(last)}; revoke returned after "
        f"{milliseconds(returned)}")  # fmt: skip


async def forbid_push(ground: Site) -> str:
    """The URL of a user to whom nothing is pushed."""
    client = Redis.from_url(ground.keys.url)
    await client.execute_command(*UNPUSHED_USER)  # type: ignore[no-untyped-call]
    await client.aclose()
    return ground.keys.url.replace("unix://", "unix://unpushed:password@")


def show(ground: Site, env: dict[str, str], trials: int, *, pushed: bool) -> None:
    with serving(env, ground.folder / "serve.log", WORKERS) as instance:
        pids = wait_for_workers(instance, WORKERS, WORKERS if pushed else 0)
        say(f"{'pushed' if pushed else 'not pushed'}, {WORKERS} workers:")
        numbers: dict[Kind, int] = {"hot": trials, "idle": trials // 4, "asleep": trials // 4}
        for kind, number in numbers.items():
            uvloop.run(measure(ground, instance.partners, pids, kind, number))


def main(trials: str = "200") -> int:
    with site() as ground:
        show(ground, ground.env, int(trials), pushed=True)
        unpushed = asyncio.run(forbid_push(ground))
        show(ground, {**ground.env, "FORECAST_KEYS_URL": unpushed}, int(trials), pushed=False)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
