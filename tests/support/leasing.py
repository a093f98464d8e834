"""Leases without Redis, whose answers a test can delay, hold or refuse, and a limiter over them."""

import asyncio
from collections.abc import Callable
from functools import partial

from service.base.terms import Rate
from service.quota.gcra import decide
from service.quota.lease_store import Lease, LeaseStore
from service.quota.rates import RateLimiter
from service.redis.errors import StoreUnavailable
from tests.support.key_store import Clock
from tests.support.waiting import settled


class FakeLeases(LeaseStore):
    """`calls` has each call's key and wish. While `away`, calls fail; while `holding`, answers wait for `let_go`.

    With a `delay` in seconds, an answer arrives that much after it was given: when the clock has gone on, at `arrive`.
    """

    def __init__(self, clock: Clock, delay: float = 0.0) -> None:
        self.clock = clock
        self.delay = delay
        self.calls: list[tuple[str, int]] = []
        self.tats: dict[str, int] = {}
        self.granted = 0
        self.away = False
        self.holding = False
        self._held: list[tuple[float, Callable[[], None]]] = []

    def lease(self, key_id: str, rate: Rate, wanted: int, least: int) -> asyncio.Future[Lease]:
        self.calls.append((key_id, wanted))
        leased: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()
        outcome = decide(self.tats.get(key_id), rate, int(self.clock() * 1_000_000), wanted, least)
        if self.away:
            answer = partial(leased.set_exception, StoreUnavailable("the leases are away"))
        else:
            self.tats[key_id] = outcome.tat
            self.granted += outcome.granted
            answer = partial(leased.set_result, Lease(outcome.granted, outcome.remaining, outcome.retry_after))
        if self.delay or self.holding:
            self._held.append((self.clock() + self.delay, answer))
        else:
            answer()
        return leased

    def arrive(self) -> None:
        """Every answer whose time has come."""
        self._release(lambda due: due <= self.clock())

    def let_go(self) -> None:
        """Every answer that is held."""
        self._release(lambda _: True)

    def _release(self, wanted: Callable[[float], bool]) -> None:
        due = [tell for at, tell in self._held if wanted(at)]
        self._held = [(at, tell) for at, tell in self._held if not wanted(at)]
        for tell in due:
            tell()


class OneWorker:
    """A limiter, its leases and its clock."""

    def __init__(self, workers: int = 4) -> None:
        self.clock = Clock()
        self.leases = FakeLeases(self.clock)
        self.workers = workers
        self.limiter = self.another()

    def another(self) -> RateLimiter:
        """A limiter over the same leases, which knows nothing of what the first one was told."""
        return RateLimiter(self.leases, lambda: self.workers, self.clock)

    def asked(self, rate: Rate, passed: "list[bool]", key_id: str = "k") -> bool:
        """A request that waits if it has to; `passed` is told of it if it passes. Whether it waits."""
        decision = self.limiter.try_take(key_id, rate)
        if decision is None:
            waits = asyncio.ensure_future(self.limiter._wait(key_id, rate))
            waits.add_done_callback(lambda decided: passed.append(decided.result().allowed))
            return True
        passed.append(decision.allowed)
        return False

    async def take(self, rate: Rate, times: int = 1, key_id: str = "k") -> int:
        """How many of so many requests, one after the other and all at this moment, are let pass."""
        passed = 0
        for _ in range(times):
            passed += (await self.limiter.take(key_id, rate)).allowed
            await settled()
        return passed

    async def drive(self, rate: Rate, per_second: float, seconds: float) -> int:
        """So many requests a second, evenly; how many of them pass."""
        passed = 0
        for _ in range(round(per_second * seconds)):
            self.clock.now += 1 / per_second
            passed += await self.take(rate)
        return passed
