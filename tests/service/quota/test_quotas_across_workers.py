"""Four workers over one store, which takes a millisecond for each way: how much of a quota they let pass together.

In virtual time, with requests at random (a Poisson process), the same in each run. An answer takes two milliseconds.
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from fakeredis import FakeServer

from service.base.terms import Quota, parse_quota
from service.quota.quotas import WAIT_SECONDS
from service.quota.usage_store import HOLD_SECONDS
from tests.support.key_store import Clock
from tests.support.usage import NOON, UsageWorker, double
from tests.support.virtual import VirtualLoop

ANSWER_SECONDS, SLOW_SECONDS = 0.002, 0.8
EVEN = (1, 1, 1, 1)


class VirtualClock(Clock):
    def __call__(self) -> float:
        return NOON + asyncio.get_running_loop().time()


class Workers:
    """`passed` has the moments of what was answered, `waited` how many requests had to ask, of `asked` in all.

    `withheld` counts 503s. `unbilled` is the share of 404s, `weight` how many one request counts as, and `slow` the
    share of answers that take SLOW_SECONDS.
    """

    def __init__(self, data: Path, quota: Quota, number: int = 4) -> None:
        server = FakeServer()
        self.quota = quota
        self.workers = [self._worker(data, server, number) for _ in range(number)]
        self.passed: list[float] = []
        self.asked = self.waited = 0
        self.longest = 0.0
        self.withheld = 0
        self.weight, self.unbilled, self.slow = 1, 0.0, 0.0
        self._chance = random.Random(11)
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

    async def turns(self, number: int) -> None:
        """One client, which changes the worker for each request."""
        for at in range(number):
            await self._request(self.workers[at % len(self.workers)])

    async def _request(self, worker: UsageWorker) -> None:
        """Fails if it gets a 429 before all is used up."""
        self.asked += 1
        loop, quotas, weight = asyncio.get_running_loop(), worker.quotas, self.weight
        began = loop.time()
        state = await quotas.standing("a", self.quota, weight)
        self.waited += loop.time() > began
        self.longest = max(self.longest, loop.time() - began)
        if state.withheld:
            self.withheld += 1
            return
        if state.remaining < weight:
            assert len(self.passed) + weight > self.quota.requests, "a 429 although enough is left"
            await asyncio.sleep(ANSWER_SECONDS)
            worker.counters.count("a", "forecast", "limited")
            return
        quotas.begin("a", id(state), weight)
        await asyncio.sleep(SLOW_SECONDS if self._chance.random() < self.slow else ANSWER_SECONDS)
        if self._chance.random() < self.unbilled:
            worker.counters.count("a", "forecast", "not_found", weight)
        else:
            worker.counters.count("a", "forecast", "answered", weight)
            self.passed += [worker.clock()] * weight
        quotas.end("a", id(state))

    async def stop(self) -> None:
        for worker in self.workers:
            await worker.flusher.stop()
            await worker.client.aclose()


def simulate(data: Path, quota: str, script: "Callable[[Workers], Awaitable[None]]", number: int = 4) -> Workers:
    async def run() -> Workers:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(time, "time", VirtualClock())  # that of the store
            workers = Workers(data, parse_quota(quota), number)
            await script(workers)
            await workers.stop()
        return workers

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(run())


@pytest.mark.parametrize(
    ("quota", "per_second"),
    [("10/day", 4), ("10/day", 1000), ("100/day", 2000), ("1000/day", 2000), ("4000/day", 2000)],
    ids=["slow", "tiny", "small", "hot", "hotter"],
)
def test_exactly_a_quota_is_answered(tmp_path: Path, quota: str, per_second: float) -> None:
    workers = simulate(tmp_path, quota, lambda workers: workers.drive(per_second, 5))
    assert len(workers.passed) == workers.quota.requests


@pytest.mark.parametrize("connections", [1, 8, 32], ids=str)
def test_connections_that_ask_without_a_pause_get_exactly_it(tmp_path: Path, connections: int) -> None:
    workers = simulate(tmp_path, "100/day", lambda workers: workers.callers(connections, 2))
    assert len(workers.passed) == 100


@pytest.mark.parametrize("quota", [1, 3, 10, 100], ids=str)
def test_a_client_that_changes_the_worker_for_each_request_gets_all_of_it(tmp_path: Path, quota: int) -> None:
    workers = simulate(tmp_path, f"{quota}/day", lambda workers: workers.turns(quota + 10))
    assert (len(workers.passed), workers.withheld) == (quota, 0)


@pytest.mark.parametrize(
    ("weight", "unbilled", "slow"), [(1, 0.3, 0.0), (1, 0.0, 0.2), (7, 0.0, 0.0), (7, 0.3, 0.2)], ids=str
)
def test_none_is_answered_beyond_it_whatever_the_answers_are(
    tmp_path: Path, weight: int, unbilled: float, slow: float
) -> None:
    """Some that are not billed, some that take long, some that count as seven. What is held meanwhile is used later."""

    async def script(workers: Workers) -> None:
        workers.weight, workers.unbilled, workers.slow = weight, unbilled, slow
        await workers.drive(600 / weight, 1)
        await asyncio.sleep(HOLD_SECONDS + 1)
        await workers.drive(30, 3)

    assert len(simulate(tmp_path, "200/day", script).passed) == 200 // weight * weight


def test_a_worker_that_dies_takes_what_it_holds_for_a_moment(tmp_path: Path) -> None:
    """It holds a quarter of its share. Others get a 503 for this rest until the hold ends."""

    async def script(workers: Workers) -> None:
        dead = workers.workers[0]
        await dead.quotas.standing("a", workers.quota)
        dead.redis.away = True
        await workers.drive(1200, 1, (0, 1, 1, 1))
        assert 0 < workers.quota.requests - len(workers.passed) <= 1000 // 16
        assert workers.withheld
        await asyncio.sleep(HOLD_SECONDS + 1)
        await workers.drive(50, 2, (0, 1, 1, 1))

    assert len(simulate(tmp_path, "1000/day", script).passed) == 1000


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


def test_workers_that_use_what_they_hold_when_all_else_is_used_up_exceed_nothing(tmp_path: Path) -> None:
    """Three workers that ask once, and go on only when the fourth has used up everything."""

    async def script(workers: Workers) -> None:
        await workers.turns(len(workers.workers))
        await workers.callers(1, 0.7)
        await workers.drive(20_000, 0.05, (0, 1, 1, 1))

    assert len(simulate(tmp_path, "400/day", script).passed) == 400


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
