"""The rates of keys, right across workers, without a round trip for most requests (Decision 17).

The bucket of a key is in Redis (`lease_store.py`). A key of at least 50 requests a second is leased ahead: as many
tokens as this worker spends in a second, and at most its part of what the rate allows in 50 ms, renewed in the
background before they are spent. A slower key asks Redis for each request. After a refusal, requests are refused here
until Redis would grant one again. Concurrent requests share one call.

In any window of `w` seconds, all workers together accept at most burst + rate * (w + 0.05): what they hold when it
begins, and what Redis grants meanwhile. That exceeds the bucket's own bound, burst + rate * w, by at most 5 % in any
second, 0.25 % in any 20 s, and nothing in the long run. A token that nobody spends is lost after a second. (One that
somebody waits for is used when it arrives, which the store's budget bounds.)

While Redis is away, each worker grants its share of rate and burst, from what was left when it last heard. An outage
may grant one more burst, if the workers had not heard that it is spent. When the outage ends, what they granted is
charged to the bucket, so that there is no second burst, unless Redis has lost the record. A worker that alone cannot
reach Redis adds its share to what the others grant.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from service.base.terms import Rate
from service.quota.gcra import Decision, allowed, pace_of, refused
from service.quota.holding import TokenLease, Waiter
from service.quota.lease_store import Lease, Leases
from service.redis.errors import StoreUnavailable

log = logging.getLogger("forecast.quota")

T = TypeVar("T")

# A key idle for longer is forgotten, and so are the least recent ones above this number: about 10 MB. A key forgotten
# while Redis is away has its share of the burst again.
REMEMBERED_KEYS, REMEMBERED_SECONDS = 20_000, 600.0


class Recent(Generic[T]):
    """Keeps at most about `most` values. One that nobody asks for during `seconds`, or up to twice that, is forgotten.

    Its owner has it for as long as it lives. There are two generations: a value that is asked for moves to the young
    one. When that is full or has had its time, it becomes the old one, and what is left in the old one is dropped. So
    nothing is ever sorted or searched, and a hit in `young` costs one look into a dict.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self.young: dict[str, T] = {}  # may be read directly, which is faster than `find`
        self._old: dict[str, T] = {}
        self._half = max(1, most // 2)
        self._seconds = seconds
        self._began = float("-inf")

    def __len__(self) -> int:
        return len(self.young) + len(self._old)

    def find(self, name: str, now: float) -> T | None:
        found = self.young.get(name)
        if found is None:
            found = self._old.pop(name, None)
            if found is not None:
                self.put(name, found, now)
        return found

    def put(self, name: str, value: T, now: float) -> None:
        """Remembers `value`, as of `now` in seconds."""
        if len(self.young) >= self._half or now - self._began >= self._seconds:
            self._old, self.young = self.young, {}
            self._began = now
        self.young[name] = value


class RateLimiter:
    """The rates as one worker keeps them, for as long as it lives.

    `share` returns how many workers there are altogether, at least 1. `clock`, in seconds, never goes back.
    """

    def __init__(self, leases: Leases, share: Callable[[], int], clock: Callable[[], float] = time.monotonic) -> None:
        self._leases = leases
        self._share = share
        self._clock = clock
        self._holdings: Recent[TokenLease] = Recent(REMEMBERED_KEYS, REMEMBERED_SECONDS)
        self._under_way = 0  # leases that were asked for
        self._all_told: asyncio.Future[None] | None = None  # somebody waits until there are none

    def try_take(self, key_id: str, rate: Rate, now: float | None = None) -> Decision | None:
        """The decision on one request, if it can be made here; None if `take` must ask. Needs a running loop.

        `now` is by this limiter's clock.
        """
        if now is None:
            now = self._clock()
        holding = self._holdings.young.get(key_id)
        if holding is None or holding.rate is not rate:
            holding = self._find(key_id, rate, now)
        if not holding.spend(now):
            return self._without_tokens(holding, now)
        if holding.wants_renewal(now):
            self._start(key_id, holding)
        return holding.passed

    def holding(self, key_id: str) -> TokenLease | None:
        """The tokens held of the key, for `admit` to spend (holding.py). Ask again when none is left."""
        return self._holdings.young.get(key_id)

    def denied_until(self, key_id: str) -> float:
        """As long as this, by the limiter's clock, the key is refused without asking Redis; minus infinity if it is
        not, or if it is decided here while Redis is away."""
        holding = self._holdings.young.get(key_id)
        if holding is None or self._clock() < holding.local_until:
            return float("-inf")
        return holding.denied_until

    async def take(self, key_id: str, rate: Rate) -> Decision:
        """The decision on one request. A caller that goes away costs the others nothing."""
        decision = self.try_take(key_id, rate)
        if decision is not None:
            return decision
        return await self._wait(key_id, rate)

    async def take_together(self, key_id: str, rate: Rate, number: int) -> Decision:
        """The decision on `number` requests (at most the burst) that pass together or not at all. A refusal takes
        nothing: not even the tokens that are there."""
        now = self._clock()
        holding = self._find(key_id, rate, now)
        if holding.spend(now, number):
            if holding.wants_renewal(now):
                self._start(key_id, holding)
            return holding.passed
        decision = self._without_tokens(holding, now, number)
        if decision is not None:
            return decision
        # a lease of its own: whoever waits for the next one may be fewer
        wanted = min(number + holding.local.debt(now), pace_of(rate).burst)
        try:
            lease = await self._leases.lease(key_id, rate, wanted, wanted)
        except StoreUnavailable as error:
            log.debug("rate of %s: %s", key_id, error)
            now = self._clock()
            holding.part(now)
            return self._locally(holding, now, number)
        if not lease.granted:
            return refused(lease.retry_after / 1_000_000, min(lease.remaining, number - 1))
        holding.local.heard(lease.remaining, self._clock())
        return allowed(rate, lease.remaining)

    async def stop(self) -> None:
        """Waits for the leases under way: who waits for one is told."""
        while self._under_way:
            self._all_told = asyncio.get_running_loop().create_future()
            await self._all_told
        await self._leases.stop()

    def _wait(self, key_id: str, rate: Rate) -> Waiter:
        """Waits for the next lease."""
        holding = self._find(key_id, rate, self._clock())
        waiter: Waiter = asyncio.get_running_loop().create_future()
        holding.waiting.append(waiter)
        if not holding.asks:
            self._start(key_id, holding)
        return waiter

    def _find(self, key_id: str, rate: Rate, now: float) -> TokenLease:
        holding = self._holdings.find(key_id, now)
        if holding is None:
            holding = TokenLease(rate)
            self._holdings.put(key_id, holding, now)
        else:
            holding.adopt(rate)
        return holding

    def _without_tokens(self, holding: TokenLease, now: float, number: int = 1) -> Decision | None:
        if now < holding.local_until:
            return self._locally(holding, now, number)
        if now < holding.denied_until:
            further = pace_of(holding.rate).cost(number - 1) / 1_000_000
            return refused(holding.denied_until - now + further)
        return None

    def _locally(self, holding: TokenLease, now: float, number: int = 1) -> Decision:
        outcome = holding.local.take(holding.rate, self._share(), now, number)
        if outcome.granted:
            return allowed(holding.rate, outcome.remaining)
        return refused(outcome.retry_after / 1_000_000, outcome.remaining)

    def _start(self, key_id: str, holding: TokenLease) -> None:
        """Asks for a lease, if anything is wanted."""
        sent = self._clock()
        debt = holding.local.debt(sent)
        wanted = debt + len(holding.waiting) + holding.ahead(sent, self._share())
        if wanted:
            rate = holding.rate
            lease = self._leases.lease(key_id, rate, wanted, 1)
            lease.add_done_callback(partial(self._landed, key_id, holding, rate, debt, sent))
            holding.ask(sent)
            self._under_way += 1

    def _landed(
        self, key_id: str, holding: TokenLease, rate: Rate, debt: int, sent: float, leased: asyncio.Future[Lease]
    ) -> None:
        """Asks again for those who still wait."""
        holding.asks = False
        self._under_way -= 1
        if not self._under_way and self._all_told is not None and not self._all_told.done():
            self._all_told.set_result(None)
        now, error = self._clock(), leased.exception()
        if error is not None:
            log.debug("rate of %s: %s", key_id, error)
            holding.part(now)
            holding.settle(lambda: self._locally(holding, now))
        elif holding.rate == rate:  # an answer about another rate may refuse for much longer
            holding.receive(leased.result(), debt, sent, now)
        if holding.waiting:
            self._start(key_id, holding)
