"""How exactly a quota holds that five keys of a partner share, over two instances that share both Redis and no folder.

``python -m tests.figures.shared_quota [REQUESTS [QUOTA]]`` (100,000 and 60,000 by default): CONNECTIONS connections ask
without a pause, with the keys in turn. First while all is well, then with another partner, whose key store is killed
when half of the quota is used up. Reports how many were answered, and how many of these beyond the quota.
"""

import asyncio
import sys
import time
from collections import Counter

import uvloop

from service.base.terms import Quota, Terms
from service.keys import changes, named
from service.keys.record import NO_MORE
from service.keys.store import KeyStore
from tests.figures.common import Connection, Site, request, say, site
from tests.figures.many_workers import apart, connected
from tests.support.instance import Instance

INSTANCES, WORKERS_EACH, KEYS, CONNECTIONS_EACH = 2, 2, 5, 4
WORKERS = INSTANCES * WORKERS_EACH


async def issue(store: KeyStore, partner: str, quota: int) -> list[bytes]:
    """Returns a request with each of the new keys."""
    await named.set_partner(store, partner, Terms(quota=Quota(quota, "day")), "")
    issued = [await changes.issue(store, partner, "", None, Terms(), test=False, more=NO_MORE) for _ in range(KEYS)]
    return [request(presented) for presented, _ in issued]


async def ask(connections: list[Connection], requests: list[bytes], number: int) -> Counter[int]:
    """Returns the statuses of so many requests, each connection with one under way."""
    statuses: Counter[int] = Counter()
    sent = 0

    async def client(connection: Connection) -> None:
        nonlocal sent
        while sent < number:
            sent += 1
            statuses[await connection.ask(requests[sent % KEYS])] += 1

    await asyncio.gather(*map(client, connections))
    return statuses


async def measure(ground: Site, instances: list[Instance], number: int, quota: int) -> tuple[int, int]:
    """Returns how many were answered beyond the quota: while all was well, and over an outage."""
    async with ground.store() as store:
        well, broken = [await issue(store, partner, quota) for partner in ("acme", "other")]
    async with connected(instances, WORKERS_EACH, CONNECTIONS_EACH) as connections:
        began = time.perf_counter()
        statuses = await ask(connections, well, number)
        pace = number / (time.perf_counter() - began)
        over = statuses[200] - quota
        say(f"well: {dict(statuses)} of {number:,} at {pace:,.0f}/s over {WORKERS} workers, {over} beyond {quota:,}")
        before = await ask(connections, broken, quota // 2)
        ground.keys.kill()
        during = await ask(connections, broken, number - quota // 2)
        answered = before[200] + during[200]
        away = answered - quota
        say(f"away: {dict(before)}, then {dict(during)} without the key store: {answered:,} answered, {away} beyond it")
    return over, away


def run(number: int = 100_000, quota: int = 60_000) -> tuple[int, int]:
    with site() as ground:

        async def prepare() -> None:  # the pepper is made with the first key
            async with ground.store() as store:
                await store.issue("first", "", None)

        uvloop.run(prepare())
        with apart(ground, INSTANCES, WORKERS_EACH) as instances:
            return uvloop.run(measure(ground, instances, number, quota))


if __name__ == "__main__":
    run(*map(int, sys.argv[1:3]))
