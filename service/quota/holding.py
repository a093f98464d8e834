"""What one worker knows about the rate of one key: leased tokens, a refusal, its demand, who waits.

Pure: `rates.py` brings clock and store.
"""

from collections.abc import Callable
from functools import lru_cache
from math import sqrt

from service.base.terms import Rate
from service.quota.gcra import Bucket, Decision, GcraDecision, allowed, decide, pace_of, refused
from service.quota.lease_store import Lease

# A slower key asks for every request: they are few, and a token held back would be a large part of its rate.
LEASED_FROM_PER_SECOND = 50
# A lease is for this much of the worker's demand, and at most of the key's rate: half a token's life, so that it is
# spent before its life ends.
LEASE_SECONDS = 0.015
# A token not spent by then is lost. This bounds what such tokens can add to any second: 3 % of the rate.
LIFE_SECONDS = 0.03
# A few tokens may live longer, for keys that come too seldom for that: in all workers together, at most this share of
# what the rate allows in a second, which is what they can add to any second.
SPARE_SHARE, SPARE_LIFE_SECONDS = 0.02, 1.0
# After a refusal, a leased key asks again after this long, or later if Redis says so.
PAUSE_SECONDS = 0.01
# Requests come at random (a Poisson process): a lease allows for this many standard deviations fewer than expected.
_DEVIATIONS = 1.2
# Demand is measured over at least this long, and forgotten after the longer.
_SAMPLE_SECONDS, _MEMORY_SECONDS = 0.1, 1.0
# Demand that rises to this many times what was measured is met at the pace since the last lease. Much of that lease may
# be lost, so it takes at most one in so many of the tokens left.
_RISEN, _HARDLY = 2, 64
_LEAST_SECONDS = 0.001
# A lease of this many tokens is renewed when half of it, or of its life, is over, because so busy a loop reads the
# answer late. A smaller lease is renewed at a quarter: its held tokens would be missed.
_MANY = 64

# After a failure, a key is decided here for this long before Redis is asked again: briefly after one lost answer,
# because other workers may still grant the whole rate; twice as long with each further one, up to the second figure.
FIRST_LOCAL_SECONDS, LOCAL_SECONDS = 0.05, 0.5

_NEVER = float("-inf")

TellDecision = Callable[[Decision], None]
# Who waited, each with what to be told.
Told = list[tuple[TellDecision, Decision]]


class LocalShare:
    """Part of one Holding: a bucket with the key's rate and burst (at least 1) divided by the number of workers.

    It starts with this worker's share of what the common bucket in Redis held when last heard of; full if never. What
    it grants is owed to the common bucket. The first lease after the outage pays the debt, so that the end of an outage
    brings no second burst. What the rate has refilled meanwhile is no longer owed.

    Times are in seconds of a clock that never goes back.
    """

    __slots__ = ("_bucket", "_heard", "_paid", "_rate")

    def __init__(self) -> None:
        self._heard: tuple[int, float] | None = None
        self._bucket: Bucket | None = None
        self._paid = 0  # theoretical arrival time, in microseconds, up to which nothing is owed
        self._rate: Rate | None = None

    def heard(self, remaining: int, now: float) -> None:
        """The common bucket holds `remaining` tokens, after it paid what it could of the debt; no more is owed."""
        self._heard = remaining, now

    def take(self, rate: Rate, workers: int, now: float, number: int = 1) -> GcraDecision:
        """`number` requests at `now`, together or not at all."""
        workers = max(1, workers)
        self._rate = _divided(rate, workers)
        if self._heard is not None:
            remaining, then = self._heard
            missing = max(0, self._rate.burst - -(-remaining // workers))
            self._paid = _micros(then) + pace_of(self._rate).cost(missing)
            self._bucket, self._heard = Bucket(self._paid), None
        outcome = decide(self._bucket, self._rate, _micros(now), number, number)
        self._bucket = outcome.bucket
        return outcome

    def debt(self, now: float) -> int:
        """Whole requests granted here that were neither paid for nor refilled since."""
        if self._bucket is None or self._rate is None or self._heard is not None:
            return 0
        pace = pace_of(self._rate)
        return max(0, self._bucket.tat - max(self._paid, _micros(now))) * pace.requests // pace.micros


@lru_cache(maxsize=1024)
def _divided(rate: Rate, workers: int) -> Rate:
    return Rate(rate.requests, rate.seconds * workers, max(1, rate.burst // workers))


def _micros(seconds: float) -> int:
    return int(seconds * 1_000_000)


class Holding:
    """The tokens of one key in one worker's RateLimiter, which forgets it when the key is idle.

    Times are in seconds of one clock that never goes back. `tokens` may be spent until `expires`, then those of the
    next lease. At `low` tokens, and from `renew_at` on, the lease is to be renewed. `spent` counts tokens since the
    beginning. `passed` is the decision for whoever spends one: at least that many are left. `alone` is how long the key
    does without Redis after the last call, in seconds; 0 if that was answered. `asks`: a lease is asked for now.

    While `tokens` exceeds `low`, and before `renew_at`, the direct answer may spend a token itself.
    """

    __slots__ = (
        "_beyond",
        "_cost",
        "_counted_at",
        "_demand",
        "_late",
        "_leased_at",
        "_leased_spent",
        "_life",
        "_most_ahead",
        "_next_expires",
        "_next_tokens",
        "_pause",
        "_sampled_spent",
        "_token_at",
        "alone",
        "asks",
        "denied_until",
        "expires",
        "local",
        "local_until",
        "low",
        "passed",
        "rate",
        "renew_at",
        "spent",
        "tokens",
        "waiting",
    )  # fmt: skip

    def __init__(self, rate: Rate, now: float) -> None:
        self.waiting: list[TellDecision] = []
        self.asks = False
        self.local = LocalShare()
        self.local_until = _NEVER
        self.alone = 0.0
        self.spent = self._sampled_spent = self._leased_spent = 0
        self._demand = 0.0
        self._counted_at = self._leased_at = now
        self._late = False
        self._life = LIFE_SECONDS  # of the tokens leased next
        self.rate = rate
        self._begin()

    def adopt(self, rate: Rate) -> None:
        """Takes this rate from now on; it may be the same one, decoded again."""
        is_news = rate != self.rate
        self.rate = rate
        if is_news:
            self._begin()

    def _begin(self) -> None:
        """Starts anew with this rate: what was leased or refused under another one no longer counts."""
        rate = self.rate
        pace = pace_of(rate)
        per_second = rate.per_second
        self._most_ahead = max(1, int(per_second * LEASE_SECONDS)) if per_second >= LEASED_FROM_PER_SECOND else 0
        # never so long that a small bucket overflows meanwhile
        self._pause = min(PAUSE_SECONDS, pace.burst / per_second / 4) if self._most_ahead else 0.0
        self._cost = pace.cost(1) / 1_000_000  # seconds, in which one token comes
        self._token_at = _NEVER  # when the first one comes after a refusal
        self.tokens = self._next_tokens = self._beyond = self.low = 0
        self.expires = self.renew_at = self._next_expires = self.denied_until = _NEVER
        self.passed = allowed(rate, 0)

    def _tell(self) -> None:
        left = self._next_tokens + self._beyond
        if left != self.passed.remaining:
            self.passed = allowed(self.rate, left)

    def spend(self, now: float, number: int = 1) -> bool:
        """Takes `number` tokens, if so many are held whose life has not ended; returns whether it did."""
        if not self.tokens or now >= self.expires:
            self.tokens, self.expires, self._next_tokens = self._next_tokens, self._next_expires, 0
            self.renew_at = self.expires
            if now >= self.expires:
                self.tokens = 0
            self._tell()
        if self.tokens < number:
            return False
        self.tokens -= number
        self.spent += number
        return True

    @property
    def is_leased(self) -> bool:
        """Whether tokens are leased ahead of demand."""
        return self._most_ahead > 0

    def has_tokens(self, now: float) -> bool:
        return bool((self.tokens and now < self.expires) or (self._next_tokens and now < self._next_expires))

    def denies(self, now: float) -> bool:
        """Whether a request is refused here, without asking Redis."""
        return self.local_until <= now < self.denied_until and not self.has_tokens(now)

    def wants_renewal(self, now: float) -> bool:
        return (
            (self.tokens <= self.low or now >= self.renew_at)
            and not self.asks
            and self._most_ahead > 0
            and not self._next_tokens
            and now >= self.denied_until
            and now >= self.local_until
        )

    def part(self, now: float) -> None:
        """Redis did not answer: decides the key here for a while."""
        self.alone = min(LOCAL_SECONDS, max(FIRST_LOCAL_SECONDS, 2 * self.alone))
        self.local_until = now + self.alone
        self.denied_until = self._token_at = _NEVER  # whether a token was taken is not known

    def ask(self, sent: float) -> None:
        """A lease is asked for. If it is for the one token that has come since a refusal, all others are refused until
        the next one comes: a crowd would wait, to be told just that."""
        self.asks = True
        if self._token_at <= sent < self._token_at + self._cost:
            self._token_at += self._cost
            self.denied_until = self._token_at

    def ahead(self, now: float, workers: int) -> int:
        """Tokens to lease for requests that have not come yet, as one of so many workers. Call once for each lease."""
        self._measure(now)
        soon = self._ahead_soon(now)
        spare = int(min(self.rate.per_second * SPARE_SHARE / workers, self._demand * SPARE_LIFE_SECONDS))
        if not self._most_ahead or spare <= soon:
            self._life = LIFE_SECONDS
            return soon
        self._life = SPARE_LIFE_SECONDS
        left = self.tokens if now < self.expires else 0
        return max(0, spare - left)  # no more, with those that are left

    def _ahead_soon(self, now: float) -> int:
        rising = self._rising(now)
        # leases that arrive half spent would be lost
        if self._late:
            return 0
        expected = self._demand * LIFE_SECONDS
        surely = expected - _DEVIATIONS * sqrt(expected)
        measured = min(int(self._demand * LEASE_SECONDS), int(surely))
        return max(0, min(max(measured, rising), self._most_ahead))

    def _measure(self, now: float) -> None:
        elapsed = now - self._counted_at
        if elapsed >= _SAMPLE_SECONDS:
            sample = (self.spent - self._sampled_spent) / elapsed
            self._demand = sample if elapsed >= _MEMORY_SECONDS else (self._demand + sample) / 2
            self._sampled_spent = self.spent
            self._counted_at = now

    def _rising(self, now: float) -> int:
        lately, elapsed = self.spent - self._leased_spent + len(self.waiting), now - self._leased_at
        self._leased_spent, self._leased_at = self.spent, now
        if lately <= _RISEN * self._demand * elapsed:
            return 0
        return min(int(lately / max(elapsed, _LEAST_SECONDS) * LEASE_SECONDS), self._beyond // _HARDLY)

    def receive(self, lease: Lease, debt: int, sent: float, now: float) -> Told:
        """Serves those who wait, in order, and keeps the rest. After a refusal nobody waits."""
        self.alone = 0.0
        self._late = now - sent >= LIFE_SECONDS - LEASE_SECONDS
        granted = max(0, lease.granted - debt)
        self._beyond = lease.remaining
        self.local.heard(lease.remaining, now)
        served = min(granted, len(self.waiting))
        told = [
            (tell, allowed(self.rate, granted - 1 - at + self._beyond)) for at, tell in enumerate(self.waiting[:served])
        ]
        del self.waiting[:served]
        self.spent += served
        if granted > served:
            self._keep(granted - served, sent, now)
        self._tell()
        if lease.retry_after:
            seconds = lease.retry_after / 1_000_000
            self._token_at = now + seconds
            self.denied_until = now + max(seconds, self._pause)
            told += self.settle(lambda: refused(seconds))
        elif lease.remaining:
            self.denied_until = self._token_at = _NEVER
        return told

    def _keep(self, granted: int, sent: float, now: float) -> None:
        is_many = granted >= _MANY
        expires = sent + self._life
        self.low = granted // 2 if is_many else granted // 4
        self.renew_at = sent + LEASE_SECONDS if is_many and self._life == LIFE_SECONDS else expires
        if self.tokens and now < self.expires:
            self._next_tokens, self._next_expires = granted, expires
            self.renew_at = min(self.renew_at, self.expires)
        else:
            self.tokens, self.expires, self._next_tokens = granted, expires, 0

    def settle(self, decide: Callable[[], Decision]) -> Told:
        """Nobody waits any longer: each is to be told what `decide` says."""
        waiting, self.waiting = self.waiting, []
        return [(tell, decide()) for tell in waiting]
