"""A worker's own share of a key's rate, while Redis is away."""

from functools import lru_cache

from service.base.terms import Rate
from service.quota.gcra import Bucket, GcraDecision, decide, pace_of


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
