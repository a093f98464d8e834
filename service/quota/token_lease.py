"""One worker's state of the rate of one key: leased tokens, a refusal, waiting requests.

Pure: `rates.py` has the clock and the store.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import lru_cache

from service.base.terms import Rate
from service.quota.gcra import Decision, GcraDecision, allowed, decide, pace_of, refused
from service.quota.lease_store import Lease

# A slower key calls Redis for every request: they are few, and an unspent token would be a large part of its rate.
LEASED_FROM_PER_SECOND = 50
# All workers together hold at most what the rate allows in this time: held tokens can add that much to any window.
HELD_SECONDS = 0.05
# Unspent tokens expire after this time, so that an idle worker holds none.
LIFE_SECONDS = 1.0
# After a refusal, a leased key calls Redis again after this long, or later if Redis says so.
PAUSE_SECONDS = 0.01

# After a failure, a key is decided here for this long before the next call to Redis: briefly after one lost reply,
# because other workers may still grant the whole rate; twice as long with each further one, up to the second figure.
FIRST_LOCAL_SECONDS, LOCAL_SECONDS = 0.05, 0.5

_NEVER = float("-inf")

Waiter = asyncio.Future[Decision]


class LocalShare:
    """Part of one TokenLease: a bucket with the key's rate and burst (at least 1) divided by the number of workers.

    It starts with this worker's share of the common bucket in Redis, as of its last reply; full without one. Granted
    tokens are owed to the common bucket. The first lease after the outage pays the debt, so that the end of an outage
    brings no second burst. Tokens that the rate has refilled meanwhile are no longer owed.

    Times are in seconds of a clock that never goes back.
    """

    def __init__(self) -> None:
        self._remaining: tuple[int, float] | None = None
        self._tat: int | None = None
        self._paid = 0  # theoretical arrival time, in microseconds, up to which all is paid
        self._rate: Rate | None = None

    def set_remaining(self, remaining: int, now: float) -> None:
        """Sets the common bucket to `remaining` tokens, after it paid what it could of the debt; no more is owed."""
        self._remaining = remaining, now

    def take(self, rate: Rate, workers: int, now: float, number: int = 1) -> GcraDecision:
        """Takes `number` requests at `now`, together or not at all."""
        workers = max(1, workers)
        self._rate = _divided(rate, workers)
        if self._remaining is not None:
            remaining, then = self._remaining
            missing = max(0, self._rate.burst - -(-remaining // workers))
            self._paid = _micros(then) + pace_of(self._rate).cost(missing)
            self._tat, self._remaining = self._paid, None
        outcome = decide(self._tat, self._rate, _micros(now), number, number)
        self._tat = outcome.tat
        return outcome

    def debt(self, now: float) -> int:
        """Returns the whole requests granted here that were neither paid for nor refilled since."""
        if self._tat is None or self._rate is None or self._remaining is not None:
            return 0
        pace = pace_of(self._rate)
        return max(0, self._tat - max(self._paid, _micros(now))) * pace.requests // pace.micros


@lru_cache(maxsize=1024)
def _divided(rate: Rate, workers: int) -> Rate:
    return Rate(rate.requests, rate.seconds * workers, max(1, rate.burst // workers))


def _micros(seconds: float) -> int:
    return int(seconds * 1_000_000)


class TokenLease:
    """The tokens of one key in one worker's RateLimiter, which drops it when the key is idle.

    Times are in seconds of one clock that never goes back. `tokens` may be spent until `renew_at`. At `low` tokens,
    more are to be leased. `passed` is the decision for a request that spends one: at least that many are left. `alone`
    is how long the key is decided without Redis after the last call, in seconds; 0 if Redis replied. `renewing`: a
    lease is under way.

    While `tokens` exceeds `low`, and before `renew_at`, an allowance may spend a token itself.
    """

    def __init__(self, rate: Rate) -> None:
        self.waiting: deque[Waiter] = deque()
        self.renewing = False
        self.local = LocalShare()
        self.local_until = _NEVER
        self.alone = 0.0
        self.rate = rate
        self._begin()

    def adopt(self, rate: Rate) -> None:
        """Uses this rate from now on; it may be the same one, decoded again."""
        is_news = rate != self.rate
        self.rate = rate
        if is_news:
            self._begin()

    def _begin(self) -> None:
        """Resets the lease to this rate: tokens and refusals of another one no longer count."""
        rate = self.rate
        pace = pace_of(rate)
        self.is_leased = rate.per_second >= LEASED_FROM_PER_SECOND  # ahead of demand
        # short enough that a small bucket does not overflow meanwhile
        self._pause = min(PAUSE_SECONDS, pace.burst / rate.per_second / 4) if self.is_leased else 0.0
        self._cost = pace.cost(1) / 1_000_000  # seconds, in which one token comes
        self._token_at = _NEVER  # when the first token comes after a refusal
        self._ahead = 0  # tokens to hold: doubled whenever they were spent, and fewer if some expired
        self.tokens = self.low = 0
        self.renew_at = self.denied_until = _NEVER
        self.passed = allowed(rate, 0)

    def spend(self, now: float, number: int = 1) -> bool:
        """Takes `number` tokens, if so many are held and not expired; returns whether it did."""
        if self.tokens and now >= self.renew_at:
            self._ahead = max(0, self._ahead - self.tokens)
            self.tokens = 0
        if self.tokens < number:
            return False
        self.tokens -= number
        return True

    def wants_renewal(self, now: float) -> bool:
        return (
            self.tokens <= self.low
            and not self.renewing
            and self.is_leased
            and now >= self.denied_until
            and now >= self.local_until
        )

    def part(self, now: float) -> None:
        """Decides the key here for a while, since Redis did not reply."""
        self.alone = min(LOCAL_SECONDS, max(FIRST_LOCAL_SECONDS, 2 * self.alone))
        self.local_until = now + self.alone
        self.denied_until = self._token_at = _NEVER  # it is unknown whether a token was taken

    def begin_renewal(self, sent: float) -> None:
        """Notes that a lease is requested.

        If it is for the one token refilled since a refusal, all other requests are refused until the next one: many
        would wait for just that token.
        """
        self.renewing = True
        if self._token_at <= sent < self._token_at + self._cost:
            self._token_at += self._cost
            self.denied_until = self._token_at

    def ahead(self, now: float, workers: int) -> int:
        """Returns the tokens to lease ahead of requests, as one of so many workers. Call once for each lease."""
        if not self.is_leased:
            return 0
        if now < self.renew_at:  # the last lease is spent before it expired
            self._ahead = max(2 * self._ahead, len(self.waiting))
        self._ahead = min(self._ahead, int(self.rate.per_second * HELD_SECONDS / max(1, workers)))
        return max(0, self._ahead - (self.tokens if now < self.renew_at else 0))

    def receive(self, lease: Lease, debt: int, sent: float, now: float) -> None:
        """Serves waiting requests in order, and keeps the remaining tokens. After a refusal, no request waits."""
        self.alone = 0.0
        self.local.set_remaining(lease.remaining, now)
        granted = max(0, lease.granted - debt)
        while granted and self.waiting:
            waiter = self.waiting.popleft()
            if not waiter.done():  # the tokens of a cancelled request serve the next one
                granted -= 1
                waiter.set_result(allowed(self.rate, granted + lease.remaining))
        if self.is_leased:  # the tokens of cancelled requests must not exceed what may be held
            self.tokens = min(granted + (self.tokens if now < self.renew_at else 0), self._ahead)
            self.low = self._ahead // 4
            self.renew_at = sent + LIFE_SECONDS
        self.passed = allowed(self.rate, lease.remaining)
        if lease.retry_after:
            seconds = lease.retry_after / 1_000_000
            self._token_at = now + seconds
            self.denied_until = now + max(seconds, self._pause)
            self.settle(lambda: refused(seconds))
        elif lease.remaining:
            self.denied_until = self._token_at = _NEVER

    def settle(self, decide: Callable[[], Decision]) -> None:
        """Ends every wait with the result of `decide`."""
        while self.waiting:
            waiter = self.waiting.popleft()
            if not waiter.done():
                waiter.set_result(decide())
