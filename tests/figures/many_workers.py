"""How exactly a rate and a quota hold over twelve workers: three instances that share both Redis and no folder.

``python -m tests.figures.many_workers [SECONDS [OFFERED]]`` (20 s and 2,000/s by default): first a key of 500/s with a
burst of 100, asked evenly over all workers, then one with a quota of 3,000 a day. Told of the rate, in percent of it:
the busiest and the emptiest second by the clock after the burst was spent, and window of a second, wherever it begins;
of the quota: how many were answered beyond it. Times are those of arrival here, so that a pause of this process or of a
worker makes a window look busier or emptier: by as much as answers take longer at one of its ends than at the other.
"""

import asyncio
import contextlib
import math
import shutil
import sys
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator
from typing import NamedTuple

import uvloop

from service.base.terms import Quota, Rate, Terms
from tests.figures.common import Connection, Site, milliseconds, request, say, site, spread, wait_for_workers
from tests.support.instance import Instance, serving
from tests.support.waiting import until

INSTANCES, WORKERS_EACH, CONNECTIONS_EACH = 3, 4, 8
RATE = Rate(500, 1, 100)
QUOTA = Quota(3000, "day")
TICK_SECONDS = 0.001
# Long enough for a full bucket to be seen as empty.
SETTLED_SECONDS = 1.5


class Figures(NamedTuple):
    """`most` and `least` are the accepted requests of any second by the clock, in percent of the rate; `over` those
    beyond the quota."""

    most: float
    least: float
    over: int


class Drive:
    """An open loop over `connections`. `accepted` are times of arrival; `took` are seconds from leaving to answer."""

    def __init__(self, connections: list[Connection], head: bytes) -> None:
        self.statuses: Counter[int] = Counter()
        self.accepted: list[float] = []
        self.took: list[float] = []
        self.late = 0
        self.began = self.ended = 0.0
        self._free = deque(connections)
        self._under_way: set[asyncio.Future[int]] = set()
        self._head = head

    async def run(self, offered: float, seconds: float) -> None:
        self.began = time.perf_counter()
        sent = 0
        while (now := time.perf_counter() - self.began) < seconds:
            due = int(now * offered)
            while sent < due and self._free:
                self._send(self._free.popleft())
                sent += 1
            self.late = max(self.late, due - sent)
            await asyncio.sleep(TICK_SECONDS)
        self.ended = time.perf_counter()
        while self._under_way:
            await asyncio.wait(self._under_way)

    def _send(self, connection: Connection) -> None:
        left = time.perf_counter()

        def answered(answer: "asyncio.Future[int]") -> None:
            now, status = time.perf_counter(), 0 if answer.exception() else answer.result()
            self._under_way.discard(answer)
            self.statuses[status] += 1
            self.took.append(now - left)
            if status in (200, 304):
                self.accepted.append(now)
            self._free.append(connection)

        answer = asyncio.ensure_future(connection.ask(self._head))
        self._under_way.add(answer)
        answer.add_done_callback(answered)


@contextlib.contextmanager
def apart(ground: Site, instances: int = INSTANCES, workers: int = WORKERS_EACH) -> Iterator[list[Instance]]:
    """The instances, each on a data folder of its own, when they know of each other."""
    pepper = (ground.folder / "data" / "pepper").read_text().strip()
    with contextlib.ExitStack() as stack:
        made = []
        for number in range(instances):
            folder = ground.folder / f"data-{number}"
            shutil.copytree(ground.folder / "data", folder)
            env = ground.env | {"FORECAST_DATA_DIR": str(folder), "FORECAST_KEYS_PEPPER": pepper}
            made.append(stack.enter_context(serving(env, ground.folder / f"serve-{number}.log", workers)))
        until(lambda: all(one.metric("forecast_all_workers") == instances * workers for one in made))
        yield made


@contextlib.asynccontextmanager
async def connected(
    instances: list[Instance], workers: int = WORKERS_EACH, each: int = CONNECTIONS_EACH
) -> AsyncIterator[list[Connection]]:
    """In turn, so that every worker is asked as often."""
    groups: list[list[Connection]] = []
    for one in instances:
        groups += (await spread(one.partners, wait_for_workers(one, workers), each)).values()
    connections = [connection for group in zip(*groups, strict=True) for connection in group]
    yield connections
    for connection in connections:
        connection.close()


async def measure(ground: Site, instances: list[Instance], offered: float, seconds: float) -> Figures:
    async with ground.store() as store:
        free, _ = await store.issue("acme", "", None)
        limited, _ = await store.issue("acme", "", None, Terms(rate=RATE))
        bounded, _ = await store.issue("acme", "", None, Terms(quota=QUOTA))
    async with connected(instances) as connections:
        for connection in connections:
            assert await connection.ask(request(free)) == 200
        drive = Drive(connections, request(limited))
        await drive.run(offered, seconds)
        assert drive.statuses.keys() <= {200, 304, 429}, drive.statuses
        say(f"{RATE}: offered {drive.statuses.total() / seconds:,.0f}/s, {drive.late} late; {milliseconds(drive.took)}")
        by_clock, anywhere = windows(drive)
        least, most = min(by_clock), max(by_clock)
        say(f"  of the rate: {least:.1f} to {most:.1f} % in a second by the clock, "
            f"{min(anywhere):.1f} to {max(anywhere):.1f} % in any window")  # fmt: skip
        drive = Drive(connections, request(bounded))
        await drive.run(offered, QUOTA.requests / offered + 3)
        assert drive.statuses.keys() <= {200, 304, 429}, drive.statuses
        over = len(drive.accepted) - QUOTA.requests
        say(f"{QUOTA}: {len(drive.accepted):,} answered at {offered:,.0f}/s, {over} beyond it")
    return Figures(most, least, over)


def windows(drive: Drive) -> tuple[list[float], list[float]]:
    """What was accepted in each second by the clock, and in a window from each request on, in percent of the rate."""
    settled = [at - drive.began for at in sorted(drive.accepted) if at - drive.began > SETTLED_SECONDS]
    ended = drive.ended - drive.began
    by_clock = Counter(int(at) for at in settled)
    whole = [by_clock[second] for second in range(math.ceil(SETTLED_SECONDS), int(ended))]
    anywhere = [bisect_left(settled, at + 1) - number for number, at in enumerate(settled) if at + 1 <= ended]
    return [_percent(count) for count in whole], [_percent(count) for count in anywhere]


def _percent(count: int) -> float:
    return count / RATE.per_second * 100


def run(seconds: float = 20, offered: float = 2000) -> Figures:
    with site() as ground:

        async def prepare() -> None:  # the pepper is made with the first key
            async with ground.store() as store:
                await store.issue("acme", "", None)

        uvloop.run(prepare())
        with apart(ground) as instances:
            return uvloop.run(measure(ground, instances, offered, seconds))


if __name__ == "__main__":
    run(*map(float, sys.argv[1:3]))
