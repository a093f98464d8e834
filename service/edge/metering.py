"""What a key may ask for, and what it asked: entitlement, quota and rate before an answer, usage after it.

Only the data areas are metered: the index, the description and the usage report are neither counted nor limited.
"""

import time
from collections.abc import Callable

import msgspec

from service.http.errors import problem
from service.http.head import RequestHead
from service.http.ratelimit import limit_headers, limit_lines, quota_exhausted_headers, rate_limited_headers
from service.http.reply import Header, Reply
from service.keys.record import ApiKey
from service.quota.decision import Decision
from service.quota.quotas import QuotaGuard, QuotaState
from service.quota.rates import RateLimiter
from service.quota.usage import UsageCounters, outcome_of
from service.terms import Quota, Terms

_MOST_TOLD = 20_000
# For how long a quota's seconds may be told without counting them down.
_TOLD_SECONDS = 2


class _Told:
    """The lines that tell a key what is left; said again while they are true, because writing them costs as much as
    deciding. Of a quota a thousandth less is told than there is, so that they are true for longer."""

    __slots__ = ("_floor", "_resets_in", "decision", "lines", "terms")

    def __init__(self, terms: Terms, decision: Decision | None, standing: QuotaState | None) -> None:
        self.terms = terms
        self.decision = decision
        self._floor = self._resets_in = 0
        if standing is not None:
            self._floor = standing.remaining - standing.remaining // 1000
            self._resets_in = standing.resets_in
            standing = msgspec.structs.replace(standing, remaining=self._floor)
        self.lines = limit_lines(terms.rate, decision, terms.quota, standing)

    def holds(self, standing: QuotaState | None) -> bool:
        if standing is None:
            return True
        return standing.remaining >= self._floor and 0 <= self._resets_in - standing.resets_in < _TOLD_SECONDS


class Meter:
    """Of one worker. `areas` are the names of the metered areas."""

    def __init__(
        self,
        areas: frozenset[str],
        limiter: RateLimiter,
        quotas: QuotaGuard,
        counters: UsageCounters,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._areas = areas
        self._limiter = limiter
        self._quotas = quotas
        self._counters = counters
        self._clock = clock
        self._told: dict[str, _Told] = {}

    async def refusal(self, head: RequestHead, key: ApiKey, area: str) -> Reply | None:
        """The 403 or 429 that ends the request here, or None if it may go on; then `head.limits` says what is left."""
        if area not in self._areas:
            return None
        terms = key.terms
        if terms.areas is not None and area not in terms.areas:
            return problem("not_entitled", head.request_id)
        if terms.rate is None and terms.quota is None:
            return None
        standing = None
        # the quota first: what it refuses takes no token of the rate
        if terms.quota is not None:
            standing = await self._quotas.standing(key.key_id, terms.quota)
            if standing.exhausted:
                limits = quota_exhausted_headers(terms.rate, terms.quota, standing)
                return problem("quota_exhausted", head.request_id, headers=limits)
        decision = None
        if terms.rate is not None:
            decision = self._limiter.try_take(key.key_id, terms.rate)
            if decision is None:
                decision = await self._limiter.take(key.key_id, terms.rate)
            if not decision.allowed:
                limits = rate_limited_headers(terms.rate, decision, terms.quota, standing)
                return problem("rate_limited", head.request_id, headers=limits)
        head.limits = limit_headers(terms.rate, decision, terms.quota, standing)
        if terms.quota is not None and standing is not None and standing.warning:
            head.limits = (*head.limits, _warning(terms.quota, standing))
        return None

    def admit(self, key: ApiKey, area: str) -> bytes | None:
        """The lines that say what is left, if the request may go on and nobody has to be asked; takes a token then.

        None: `refusal` decides, and nothing was taken. For the metered areas alone.
        """
        terms = key.terms
        if terms.areas is not None and area not in terms.areas:
            return None
        rate, quota = terms.rate, terms.quota
        if rate is None and quota is None:
            return b""
        standing = decision = None
        if quota is not None:
            standing = self._quotas.check(key.key_id, quota, self._clock())
            if standing is None or standing.warning or standing.exhausted:
                return None
        if rate is not None:
            decision = self._limiter.try_take(key.key_id, rate)
            if decision is None or not decision.allowed:
                return None
        told = self._told.get(key.key_id)
        if told is None or told.terms is not terms or told.decision is not decision or not told.holds(standing):
            told = self._told[key.key_id] = _Told(terms, decision, standing)
            if len(self._told) > _MOST_TOLD:
                self._told.clear()
        return told.lines

    def count(self, key: ApiKey, area: str, status: int, outcome: str) -> None:
        """Call when the request has ended, with how it was answered."""
        if area in self._areas:
            counted = outcome_of(status, outcome)
            if counted is not None:
                self._counters.count(key.key_id, area, counted)


def _warning(quota: Quota, standing: QuotaState) -> Header:
    text = b"%d of %d used this %s" % (standing.used, quota.requests, quota.period.encode())
    return (b"x-quota-warning", text)
