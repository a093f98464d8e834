"""Four workers over one store, which takes a millisecond for each way: how much of a quota they let pass together.

In virtual time, with requests at random (a Poisson process), the same in each run. An answer takes two milliseconds.
"""

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from fakeredis import FakeServer

from service.base.terms import Quota, parse_quota
from service.quota.quotas import WAIT_SECONDS
from tests.support.key_store import Clock
from tests.support.usage import NOON, UsageWorker, double
from tests.support.virtual import VirtualLoop

ANSWER_SECONDS = 0.002
EVEN = (1, 1, 1, 1)


class VirtualClock(Clock):
    def __call__(self) -> float:
        return NOON + asyncio.get_running_loop().time()


class Workers:
    """`passed` has the moments of what was let pass, `waited` how many requests had to ask, of `asked` in all."""

    def __init__(self, data: Path, quota: Quota, number: int = 4) -> None:
        server = FakeServer()
        self.quota = quota
        self.workers = [self._worker(data, server, number) for _ in range(number)]
        self.passed: list[float] = []
        self.asked = self.waited = 0
        self.longest = 0.0
        self._requests: set[asyncio.Task[None]] = set()

    def _worker(self, data: Path, server: FakeServer, number: int) -> UsageWorker:
        worker = UsageWorker(double(server), data, VirtualClock(), number)
        worker.redis.seconds = 0.001
        worker.flusher.start()
        return worker

    @property
    def calls(self) -> int:
        return sum(worker.redis.calls for worker in self.workers)

    async def drive(self, per_second: float, seconds: float, weights: Sequence[int] = EVEN) -> None:
        """Requests whether or not earlier ones were answered; afterwards all are."""
        chance = random.Random(7)
        loop = asyncio.get_running_loop()
        at = loop.time()
        end = at + seconds
        while (at := at + chance.expovariate(per_second)) < end:
            await asyncio.sleep(at - loop.time())
            [worker] = chance.choices(self.workers, weights)
            request = asyncio.create_task(self._request(worker))
            self._requests.add(request)
            request.add_done_callback(self._requests.discard)
        while self._requests:
            await asyncio.wait(self._requests)

    async def callers(self, number: int, seconds: float) -> None:
        """As a partner's connections: each asks again as soon as it was answered."""
        end = asyncio.get_running_loop().time() + seconds

        async def caller(worker: UsageWorker) -> None:
            while asyncio.get_running_loop().time() < end:
                await self._request(worker)

        await asyncio.gather(*(caller(self.workers[at % len(self.workers)]) for at in range(number)))

    async def _request(self, worker: UsageWorker) -> None:
        self.asked += 1
        loop = asyncio.get_running_loop()
        began = loop.time()
        state = await worker.quotas.standing("a", self.quota)
        self.waited += loop.time() > began
        self.longest = max(self.longest, loop.time() - began)
        await asyncio.sleep(ANSWER_SECONDS)
        worker.counters.count("a", "forecast", "rejected" if state.exhausted else "answered")
        if not state.exhausted:
            self.passed.append(worker.clock())

    async def stop(self) -> None:
        for worker in self.workers:
            await worker.flusher.stop()
            await worker.client.aclose()


def simulate(data: Path, quota: str, script: "Callable[[Workers], Awaitable[None]]", number: int = 4) -> Workers:
    async def run() -> Workers:
        workers = Workers(data, parse_quota(quota), number)
        await script(workers)
        await workers.stop()
        return workers

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(run())


@pytest.mark.parametrize(
    ("quota", "per_second", "over"),
    [("10/day", 4, 1), ("10/day", 1000, 10), ("100/day", 2000, 10), ("1000/day", 2000, 10), ("4000/day", 2000, 10)],
    ids=["slow", "tiny", "small", "hot", "hotter"],
)
def test_a_quota_is_hardly_exceeded(tmp_path: Path, quota: str, per_second: float, over: int) -> None:
    """By those requests at most that are under way at once while each one asks: about five milliseconds' worth."""
    workers = simulate(tmp_path, quota, lambda workers: workers.drive(per_second, 5))
    assert workers.quota.requests <= len(workers.passed) <= workers.quota.requests + over


@pytest.mark.parametrize("connections", [1, 8, 32], ids=str)
def test_connections_that_ask_without_a_pause_hardly_exceed_it(tmp_path: Path, connections: int) -> None:
    workers = simulate(tmp_path, "100/day", lambda workers: workers.callers(connections, 2))
    assert 100 <= len(workers.passed) <= 100 + connections


def test_what_one_worker_used_up_is_used_up_for_all(tmp_path: Path) -> None:
    async def script(workers: Workers) -> None:
        await workers.drive(8, 1)
        before = len(workers.passed)
        await asyncio.sleep(3)
        await workers.drive(50, 1, (1, 0, 0, 0))
        assert before < len(workers.passed)
        await asyncio.sleep(12)
        await workers.drive(50, 2, (0, 1, 1, 1))

    assert len(simulate(tmp_path, "20/day", script).passed) == 20


def test_what_a_worker_may_use_before_it_asks_is_its_part_of_what_is_left(tmp_path: Path) -> None:
    """The worst case: three workers that ask once, and go on only when the fourth has used up everything."""

    async def script(workers: Workers) -> None:
        for worker in workers.workers:
            await worker.quotas.prime("a")
            assert worker.quotas.check("a", workers.quota, worker.clock()) is not None
        await workers.callers(1, 0.9)
        await workers.drive(20_000, 0.05, (0, 1, 1, 1))

    passed = len(simulate(tmp_path, "400/day", script).passed)
    assert 400 < passed <= 400 * 1.25


def test_a_hot_key_seldom_waits(tmp_path: Path) -> None:
    workers = simulate(tmp_path, "1000000/day", lambda workers: workers.drive(4000, 5))
    assert len(workers.passed) == workers.asked
    assert workers.waited <= workers.asked / 1000
    assert workers.calls <= 4 * (5 / 0.5 + 5)


def test_many_who_wait_for_the_last_of_a_quota_wait_no_longer(tmp_path: Path) -> None:
    async def script(workers: Workers) -> None:
        [worker] = workers.workers
        worker.redis.seconds = 0.05
        await workers.callers(50, 0.01)

    assert simulate(tmp_path, "2/day", script, number=1).longest < WAIT_SECONDS + 0.001


def test_no_request_waits_long_for_a_store_that_hangs(tmp_path: Path) -> None:
    async def script(workers: Workers) -> None:
        [worker] = workers.workers
        await workers.drive(100, 1, (1,))
        worker.redis.fates = deque(["hangs"] * 100)
        workers.waited = 0
        await workers.callers(1, 10)
        assert workers.waited <= 10
        assert workers.longest < WAIT_SECONDS + 0.001
        worker.redis.fates.clear()

    workers = simulate(tmp_path, "1000000/day", script, number=1)
    assert len(workers.passed) == workers.asked
