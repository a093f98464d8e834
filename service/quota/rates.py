"""The rates of keys, correct across workers, without a round trip for most requests (Decision 17).

The bucket of a key is in Redis (`lease_store.py`). A key of at least 50 requests a second is leased ahead: as many
tokens as this worker spends in a second, and at most its part of what the rate allows in 50 ms, renewed in the
background before they are spent. A slower key calls Redis for each request. After a refusal, requests are refused here
until Redis would grant one again. Concurrent requests share one call.

In any window of `w` seconds, all workers together accept at most burst + rate * (w + 0.05): the tokens that they hold
when it begins, and those that Redis grants meanwhile. That exceeds the bucket's own bound, burst + rate * w, by at most
5 % in any second, 0.25 % in any 20 s, and not at all in the long run. An unspent token expires after a second. (One
that a request waits for is used when it arrives, within the store's budget.)

While Redis is unreachable, each worker grants its share of rate and burst, from what was left at its last call. An
outage may grant one more burst, if the workers did not know that it is spent. When the outage ends, the granted tokens
are charged to the bucket, so that there is no second burst, unless Redis has lost the record. A single worker that
cannot reach Redis adds its share to what the others grant.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial

from service.base.terms import Rate
from service.quota.gcra import Decision, allowed, pace_of, refused
from service.quota.lease_store import Lease, LeaseStore
from service.quota.token_lease import TokenLease, Waiter
from service.redis.errors import StoreUnavailable

log = logging.getLogger("forecast.quota")

# Above this number of keys, about 20 MB, the least recent ones are dropped. A key dropped while Redis is unreachable
# gets its share of the burst again.
MOST_KEYS = 20_000


class RateLimiter:
    """The rates as one worker keeps them, for as long as it lives.

    `share` returns how many workers there are altogether, at least 1. `clock`, in seconds, never goes back.
    """

    def __init__(
        self, leases: LeaseStore, share: Callable[[], int], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._leases = leases
        self._share = share
        self._clock = clock
        self._token_leases: OrderedDict[str, TokenLease] = OrderedDict()  # by key id, the least recent first
        self._under_way: set[asyncio.Future[Lease]] = set()

    def try_take(self, key_id: str, rate: Rate, number: int = 1) -> Decision | None:
        """Returns the decision on `number` requests (at most the burst) that pass together or not at all.

        None if it needs a call to Redis: call `take`. A refusal takes no tokens. Needs a running loop.
        """
        now = self._clock()
        token_lease = self._find(key_id, rate)
        if not token_lease.spend(now, number):
            return self._without_tokens(token_lease, now, number)
        if token_lease.wants_renewal(now):
            self._start(key_id, token_lease)
        return token_lease.passed

    def token_lease(self, key_id: str) -> TokenLease | None:
        """Returns the leased tokens of a key in use, which `admit` may spend; None if it has no rate."""
        return self._token_leases.get(key_id)

    def denied_until(self, key_id: str) -> float:
        """Returns the time, by the limiter's clock, up to which the key is refused without a call to Redis.

        Minus infinity if it is not, or if the local limiter decides while Redis is unreachable.
        """
        token_lease = self._token_leases.get(key_id)
        if token_lease is None or self._clock() < token_lease.local_until:
            return float("-inf")
        return token_lease.denied_until

    async def take(self, key_id: str, rate: Rate, number: int = 1) -> Decision:
        """Returns the same decision, if necessary after a call to Redis. A cancelled caller does not affect others."""
        decision = self.try_take(key_id, rate, number)
        if decision is not None:
            return decision
        return await (self._wait(key_id, rate) if number == 1 else self._take_together(key_id, rate, number))

    def _wait(self, key_id: str, rate: Rate) -> Waiter:
        """Waits for the next lease."""
        token_lease = self._find(key_id, rate)
        waiter: Waiter = asyncio.get_running_loop().create_future()
        token_lease.waiting.append(waiter)
        if not token_lease.renewing:
            self._start(key_id, token_lease)
        return waiter

    async def _take_together(self, key_id: str, rate: Rate, number: int) -> Decision:
        """Requests a lease of its own: fewer requests may wait for the next one."""
        token_lease = self._find(key_id, rate)
        wanted = min(number + token_lease.local.debt(self._clock()), pace_of(rate).burst)
        try:
            lease = await self._leases.lease(key_id, rate, wanted, wanted)
        except StoreUnavailable as error:
            log.debug("rate of %s: %s", key_id, error)
            now = self._clock()
            token_lease.part(now)
            return self._locally(token_lease, now, number)
        if not lease.granted:
            return refused(lease.retry_after / 1_000_000, min(lease.remaining, number - 1))
        token_lease.local.set_remaining(lease.remaining, self._clock())
        return allowed(rate, lease.remaining)

    async def stop(self) -> None:
        """Waits for the leases under way, and so for the requests that need one."""
        while self._under_way:
            await asyncio.wait(self._under_way)

    def _find(self, key_id: str, rate: Rate) -> TokenLease:
        token_lease = self._token_leases.get(key_id)
        if token_lease is None:
            token_lease = self._token_leases[key_id] = TokenLease(rate)
            if len(self._token_leases) > MOST_KEYS:
                self._token_leases.popitem(last=False)
        else:
            self._token_leases.move_to_end(key_id)
            if token_lease.rate is not rate:
                token_lease.adopt(rate)
        return token_lease

    def _without_tokens(self, token_lease: TokenLease, now: float, number: int = 1) -> Decision | None:
        if now < token_lease.local_until:
            return self._locally(token_lease, now, number)
        if now < token_lease.denied_until:
            further = pace_of(token_lease.rate).cost(number - 1) / 1_000_000
            return refused(token_lease.denied_until - now + further)
        return None

    def _locally(self, token_lease: TokenLease, now: float, number: int = 1) -> Decision:
        outcome = token_lease.local.take(token_lease.rate, self._share(), now, number)
        if outcome.granted:
            return allowed(token_lease.rate, outcome.remaining)
        return refused(outcome.retry_after / 1_000_000, outcome.remaining)

    def _start(self, key_id: str, token_lease: TokenLease) -> None:
        """Requests a lease, if any tokens are needed."""
        sent = self._clock()
        debt = token_lease.local.debt(sent)
        wanted = debt + len(token_lease.waiting) + token_lease.ahead(sent, self._share())
        if wanted:
            rate = token_lease.rate
            lease = self._leases.lease(key_id, rate, wanted, 1)
            lease.add_done_callback(partial(self._landed, key_id, token_lease, rate, debt, sent))
            token_lease.begin_renewal(sent)
            self._under_way.add(lease)

    def _landed(
        self, key_id: str, token_lease: TokenLease, rate: Rate, debt: int, sent: float, leased: asyncio.Future[Lease]
    ) -> None:
        """Requests another lease for requests that still wait."""
        token_lease.renewing = False
        self._under_way.discard(leased)
        now, error = self._clock(), leased.exception()
        if error is not None:
            log.debug("rate of %s: %s", key_id, error)
            token_lease.part(now)
            token_lease.settle(lambda: self._locally(token_lease, now))
        elif token_lease.rate == rate:  # a refusal at another rate may last much longer
            token_lease.receive(leased.result(), debt, sent, now)
        if token_lease.waiting:
            self._start(key_id, token_lease)
