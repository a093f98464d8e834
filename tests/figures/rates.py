"""How exactly a rate is kept over four workers: a key driven far above it, by an open loop.

``python -m tests.figures.rates [SECONDS [OFFERED]]`` (20 s and 5,000/s by default): first a key of 500/s with a burst
of 100, then one of 10/s with a burst of 10. Requests are due at fixed times and leave on the next of 128 connections
that is free, as many to each worker; those that no connection was free for leave late, and the rate really offered is
told. 200 and 304 are accepted, 429 is refused, anything else ends the run.

The bound of any GCRA over T seconds is burst + rate * T. Overshoot is what was accepted above it in the whole run, in
percent of rate * T; undershoot what was missing. The busiest window of 1 s is told too: there the bound that is
promised (service/quota/rates.py) is burst + rate * 1.05, and after the burst is spent rate * 1.05; times are those of
the answers' arrival here, so that a pause of this process makes a window look busier than it was.
"""

import asyncio
import sys
import time
from bisect import bisect_left
from collections import Counter, deque

import uvloop

from service.base.terms import Rate, Terms
from tests.figures.common import Connection, Site, milliseconds, request, say, site, spread, wait_for_workers
from tests.support.instance import serving

WORKERS = 4
CONNECTIONS_EACH = 32
RATES = (Rate(500, 1, 100), Rate(10, 1, 10))
TICK_SECONDS = 0.001
# Long enough for a full bucket to be seen as empty.
SETTLED_SECONDS = 1.5


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

        answer = connection.ask(self._head)
        self._under_way.add(answer)
        answer.add_done_callback(answered)


def busiest(times: list[float], seconds: float) -> int:
    """The most of `times`, which ascend, in any window so long."""
    return max((at + 1 - bisect_left(times, moment - seconds) for at, moment in enumerate(times)), default=0)


def tell(rate: Rate, drive: Drive) -> None:
    took, accepted = drive.ended - drive.began, sorted(drive.accepted)
    after = len(accepted) - rate.burst
    deviation = (after / (rate.per_second * took) - 1) * 100
    settled = [moment for moment in accepted if moment - drive.began > SETTLED_SECONDS]
    windows = [sum(int(moment - drive.began) == second for moment in accepted) for second in range(int(took))]
    offered = sum(drive.statuses.values())
    say(f"{rate}, burst {rate.burst}: offered {offered / took:,.0f}/s for {took:.2f} s, evenly over the workers; "
        f"at most {drive.late} late; answers in {milliseconds(drive.took)}")  # fmt: skip
    say(f"  {len(accepted):,} accepted and {drive.statuses[429]:,} refused: {after / took:.2f}/s after the burst, "
        f"{abs(deviation):.2f} % {'over' if deviation > 0 else 'under'}")  # fmt: skip
    say(f"  by second: {windows[0]}, then {min(windows[1:])} to {max(windows[1:])}; busiest window of 1 s: "
        f"{busiest(accepted, 1)}, {SETTLED_SECONDS} s after the start {busiest(settled, 1)}")  # fmt: skip


async def measure(ground: Site, base: str, pids: list[int], rate: Rate, offered: float, seconds: float) -> None:
    by_worker = await spread(base, pids, CONNECTIONS_EACH)
    # in turn, so that every worker is asked as often
    connections = [connection for group in zip(*by_worker.values(), strict=True) for connection in group]
    async with ground.store() as store:
        free, _ = await store.issue("acme", "", None)
        limited, _ = await store.issue("acme", "", None, Terms(rate=rate))
    for connection in connections:
        assert await connection.ask(request(free)) == 200
    drive = Drive(connections, request(limited))
    await drive.run(offered, seconds)
    assert drive.statuses.keys() <= {200, 304, 429}, drive.statuses
    tell(rate, drive)
    for connection in connections:
        connection.close()


def main(seconds: str = "20", offered: str = "5000") -> int:
    with site() as ground, serving(ground.env, ground.folder / "serve.log", WORKERS) as instance:
        pids = wait_for_workers(instance, WORKERS)
        for rate in RATES:
            uvloop.run(measure(ground, instance.partners, pids, rate, float(offered), float(seconds)))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
