"""Four limiters over one store, with a clock that a test turns: what they accept together.

Every answer takes a millisecond. Requests come at random, the same in each run.
"""

import asyncio
import random
from collections.abc import Iterator, Sequence

import pytest

from service.base.terms import Rate
from service.quota.rates import RateLimiter
from tests.support.key_store import Clock
from tests.support.leasing import FakeLeases
from tests.support.waiting import settled

EVEN, SKEWED = (1, 1, 1, 1), (97, 1, 1, 1)
FAST, SLOW = Rate(500, 1, 100), Rate(10, 1, 10)
# What all workers hold together.
OVERSHOOT = 0.05


class Workers:
    """`passed` has the moment of each accepted request; `waited` counts those that had to ask."""

    def __init__(self, number: int = 4) -> None:
        self.clock = Clock()
        self.leases = FakeLeases(self.clock, delay=0.001)
        self.limiters = [RateLimiter(self.leases, lambda: number, self.clock) for _ in range(number)]
        self.passed: list[float] = []
        self.waited = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, rate: Rate, arrivals: Iterator[tuple[float, int]]) -> None:
        """Requests at (seconds, worker); afterwards every answer has arrived."""
        for at, worker in arrivals:
            self.clock.now = at
            self.leases.arrive()
            self._request(self.limiters[worker], rate)
            await settled()
        while self._tasks:
            self.clock.now += 0.001
            self.leases.arrive()
            await asyncio.wait(self._tasks, timeout=0)

    def _request(self, limiter: RateLimiter, rate: Rate) -> None:
        decision = limiter.try_take("k", rate)
        if decision is not None:
            if decision.allowed:
                self.passed.append(self.clock.now)
            return
        self.waited += 1
        task = asyncio.create_task(self._wait(limiter, rate))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _wait(self, limiter: RateLimiter, rate: Rate) -> None:
        if (await limiter.take("k", rate)).allowed:
            self.passed.append(self.clock.now)

    def most_in(self, seconds: float) -> int:
        """Accepted in any window that long."""
        first = most = 0
        for last, at in enumerate(sorted(self.passed)):
            while self.passed[first] <= at - seconds:
                first += 1
            most = max(most, last - first + 1)
        return most

    def after(self, seconds: float) -> int:
        return sum(at >= 1000.0 + seconds for at in self.passed)


def steady(per_second: float, seconds: float, weights: Sequence[int]) -> Iterator[tuple[float, int]]:
    """Independent requests (a Poisson process), spread over the workers by weight."""
    chance = random.Random(7)
    at = 1000.0
    while (at := at + chance.expovariate(per_second)) < 1000.0 + seconds:
        yield at, chance.choices(range(len(weights)), weights)[0]


@pytest.mark.parametrize("weights", [EVEN, SKEWED], ids=["even", "skewed"])
@pytest.mark.parametrize("rate", [FAST, SLOW], ids=str)
async def test_a_key_driven_far_over_its_rate_gets_its_rate(rate: Rate, weights: Sequence[int]) -> None:
    """2,500 requests a second for 20 s: at most 5 % over in any second and in all, at least 95 % after the burst."""
    workers = Workers()
    await workers.run(rate, steady(2500, 20, weights))
    requests = rate.requests
    assert workers.most_in(1) <= rate.burst + requests * (1 + OVERSHOOT)
    assert workers.most_in(20) <= rate.burst + requests * (20 + OVERSHOOT)
    assert workers.after(1) <= requests * 19 * 1.05
    assert workers.after(1) >= requests * 19 * 0.95
    # a worker that few requests reach leases little that nobody spends
    assert workers.leases.granted - len(workers.passed) <= requests * 20 * 0.005


@pytest.mark.parametrize("weights", [EVEN, SKEWED], ids=["even", "skewed"])
async def test_a_key_within_its_rate_is_not_limited(weights: Sequence[int]) -> None:
    """At 96 % of it, however the requests are spread: few tokens are held back and lost."""
    workers = Workers()
    arrivals = list(steady(480, 20, weights))
    await workers.run(FAST, iter(arrivals))
    assert len(workers.passed) >= len(arrivals) * 0.999


async def test_a_hot_key_seldom_waits_for_redis() -> None:
    """At 2,000 requests a second on four workers, not one in twenty waits, and a call serves five at least."""
    rate = Rate(4000, 1, 1000)
    workers = Workers()
    await workers.run(rate, steady(2000, 5, EVEN))
    assert len(workers.passed) == pytest.approx(2000 * 5, rel=0.05)
    assert workers.waited < len(workers.passed) / 20
    assert len(workers.leases.calls) < len(workers.passed) / 5


async def test_a_key_that_begins_suddenly_waits_for_a_few_answers_only() -> None:
    """From nothing to 20,000 requests a second on one worker: leases grow with what was spent, from the first on."""
    rate = Rate(100_000, 1, 100_000)
    workers = Workers(1)
    await workers.run(rate, steady(20_000, 0.1, [1]))
    assert len(workers.passed) > 1900
    assert workers.waited < 150


@pytest.mark.parametrize("burst", [1, 25, 500])
async def test_the_bound_holds_when_a_crowd_comes_after_a_trickle(burst: int) -> None:
    rate, workers = Rate(1000, 1, burst), Workers()
    trickle = list(steady(80, 3, EVEN))
    await workers.run(rate, iter(trickle))
    held = workers.leases.granted - len(workers.passed)
    crowd = ((at + 3, worker) for at, worker in steady(20_000, 2, EVEN))
    await workers.run(rate, crowd)
    assert held > 0 or burst == 1  # of a bucket with one token nothing is left to hold
    assert workers.most_in(1) <= burst + 1000 * (1 + OVERSHOOT)


@pytest.mark.parametrize("burst", [1, 25, 500])
async def test_the_bound_holds_whenever_load_stops_and_starts(burst: int) -> None:
    """Tokens that a worker holds when load stops are lost before they could add to the next burst."""
    rate = Rate(500, 1, burst)
    workers = Workers()
    chance = random.Random(burst)

    def bursts() -> Iterator[tuple[float, int]]:
        at = 1000.0
        for _ in range(60):
            at += chance.choice([0.01, 0.03, 0.06, 0.2, 1.0])
            for _ in range(chance.choice([3, 30, 300])):
                at += 0.0002
                yield at, chance.randrange(4)

    await workers.run(rate, bursts())
    for seconds in (0.1, 1, 5):
        # a token that was waited for arrives a millisecond after it was granted
        assert workers.most_in(seconds) <= burst + 500 * (seconds + OVERSHOOT + 0.001)
    assert workers.leases.granted >= len(workers.passed)
