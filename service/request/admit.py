"""Checks entitlement, quota and rate of a key before an answer, and counts its usage after it.

Only data areas are metered. The index and the OpenAPI description are neither counted nor limited; the usage report
has a bound of its own (http/own_usage/usage.py).
"""

import time
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from service.base.terms import Quota, Rate, Terms
from service.base.tracing import step
from service.keys.record import ApiKey
from service.quota.gcra import Decision, pace_of
from service.quota.names import HOUR_SECONDS
from service.quota.quota_state import QuotaState
from service.quota.quotas import QuotaGuard
from service.quota.rates import RateLimiter
from service.quota.usage import UsageCounters, outcome_of
from service.request.allowance import Allowance
from service.request.errors import problem
from service.request.ratelimit import quota_exhausted_headers, rate_limited_headers
from service.request.request import Request
from service.request.response import Response

_REPEATED = "zip_code"  # the repeated parameter of a request that counts as several
_NOT_ENTITLED = "The API key does not include the area {area}. Ask for it to be added; GET /v1/ says what it includes."
_TOO_MANY = (
    "This request counts as {number}, and your key's terms never let more than {most} pass together. Ask for at most "
    "{most} at a time."
)
_QUOTA_UNKNOWN = (
    "What is left of your quota is unknown at the moment. Try again as Retry-After says: this request was not counted."
)
# Per area.
_MOST_ALLOWANCES = 20_000
# Most refusals that are kept, by key and area.
_MOST_REFUSALS = 20_000
# How long an allowance is valid without another check of the time of day and the counts.
_LOOK_SECONDS = 1.0
# How long a refusal for lack of quota is valid without another check of the remaining time.
_QUOTA_SECONDS = 0.1
_FOR_EVER = float("inf")


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """The refusal of a key in an area, for any request there, until then (monotonic seconds)."""

    key: ApiKey
    response: Response
    until: float


class Admission:
    """Admits and counts the requests of keys. One per worker, which owns it. `areas` are the metered areas."""

    def __init__(
        self,
        areas: frozenset[str],
        limiter: RateLimiter,
        quotas: QuotaGuard,
        counters: UsageCounters,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monotonic = monotonic
        self._areas = areas
        self._limiter = limiter
        self._quotas = quotas
        self._counters = counters
        self._clock = clock
        self._allowances: dict[str, dict[str, Allowance]] = {area: {} for area in areas}
        self._refusals: dict[tuple[str, str], Refusal] = {}  # by key id and area

    def admit(self, request: Request) -> Response | Coroutine[Any, Any, Response | None] | None:
        """Takes a token of the key's rate, and sets the request's allowance. Returns the 400, 403, 429 or 503 that ends
        the request.

        A request that counts as several passes as a whole or not at all: a 400 if it never could pass.
        """
        key, area, route = request.key, request.area, request.route
        allowances = self._allowances.get(area)
        if key is None or route is None or allowances is None:
            return None
        if route.weigh is not None:
            return self._decide(request, key, route.weigh(request.query))
        now = self._monotonic()
        allowance = allowances.get(key.key_id)
        if allowance is not None and allowance.key is key and allowance.spend(now):
            request.allowance = allowance
            return None
        refusal = self._refusals.get((key.key_id, area))
        if refusal is not None and refusal.key is key and now < refusal.until:
            return refusal.response
        return self._decide(request, key, 1)

    def _decide(
        self, request: Request, key: ApiKey, number: int
    ) -> Response | Coroutine[Any, Any, Response | None] | None:
        terms, area = key.terms, request.area
        if terms.areas is not None and area not in terms.areas:
            return self._refuse(key, area, problem("not_entitled", _NOT_ENTITLED.format(area=area)), _FOR_EVER)
        if terms.rate is None and terms.quota is None:
            self._allow(request, key, None, None, number)
            return None
        most = _most_together(terms)
        if number > most:
            return problem("invalid_parameter", _TOO_MANY.format(number=number, most=most), _REPEATED)
        # the quota first: a request that it refuses takes no token of the rate
        standing = None
        if terms.quota is not None:
            standing = self._quotas.check(key.key_id, terms.quota, self._clock(), number)
            if standing is None:
                return self._wait(request, key, number)
            refused = self._refused_by_quota(key, area, terms.quota, standing, number)
            if refused is not None:
                return refused
        if terms.rate is None:
            self._allow(request, key, None, standing, number)
            return None
        decision = self._limiter.try_take(key.key_id, terms.rate) if number == 1 else None
        if decision is None:
            return self._wait_for_rate(request, key, terms.rate, standing, number)
        return self._decided(request, key, terms.rate, decision, standing, number)

    async def _wait(self, request: Request, key: ApiKey, number: int) -> Response | None:
        """Waits for the total of the quota, then for the rate."""
        quota, rate = key.terms.quota, key.terms.rate
        standing = None
        if quota is not None:
            with step("quota"):
                standing = await self._quotas.standing(key.key_id, quota, number)
            refused = self._refused_by_quota(key, request.area, quota, standing, number)
            if refused is not None:
                return refused
        if rate is not None:
            return await self._wait_for_rate(request, key, rate, standing, number)
        self._allow(request, key, None, standing, number)
        return None

    async def _wait_for_rate(
        self, request: Request, key: ApiKey, rate: Rate, standing: QuotaState | None, number: int
    ) -> Response | None:
        with step("rate"):
            if number == 1:
                decision = await self._limiter.take(key.key_id, rate)
            else:
                decision = await self._limiter.take_together(key.key_id, rate, number)
        return self._decided(request, key, rate, decision, standing, number)

    def _refused_by_quota(
        self, key: ApiKey, area: str, quota: Quota, standing: QuotaState, number: int
    ) -> Response | None:
        if standing.withheld:
            return problem("unavailable", _QUOTA_UNKNOWN)
        if standing.remaining >= number:
            return None
        headers = quota_exhausted_headers(key.terms.rate, quota, standing)
        response = problem("quota_exhausted", _hint_for_too_many(number, standing.remaining), headers=headers)
        return self._refuse(key, area, response, self._monotonic() + _QUOTA_SECONDS if number == 1 else 0.0)

    def _decided(
        self, request: Request, key: ApiKey, rate: Rate, decision: Decision, standing: QuotaState | None, number: int
    ) -> Response | None:
        if decision.allowed:
            self._allow(request, key, decision, standing, number)
            return None
        headers = rate_limited_headers(rate, decision, key.terms.quota, standing)
        response = problem("rate_limited", _hint_for_too_many(number, decision.remaining), headers=headers)
        # until a second less is left to wait
        until = self._limiter.denied_until(key.key_id) - (decision.retry_after - 1) if number == 1 else 0.0
        return self._refuse(key, request.area, response, until)

    def _refuse(self, key: ApiKey, area: str, response: Response, until: float) -> Response:
        """Keeps the refusal until then, in monotonic seconds."""
        if until > self._monotonic():
            if len(self._refusals) >= _MOST_REFUSALS:
                self._refusals.clear()
            self._refusals[key.key_id, area] = Refusal(key, response, until)
        return response

    def _allow(
        self, request: Request, key: ApiKey, decision: Decision | None, standing: QuotaState | None, number: int
    ) -> None:
        """Sets the request's allowance. It is kept for the key's next requests, unless it has a warning."""
        if number > 1 or (standing is not None and not standing.unwarned):
            request.allowance = allowance = Allowance(key)
            allowance.update(decision, standing)
            return
        kept = self._allowances[request.area]
        allowance = kept.get(key.key_id) or Allowance(key)
        if allowance.key is not key:
            allowance = Allowance(key)
        if len(kept) >= _MOST_ALLOWANCES:
            kept.clear()
        kept[key.key_id] = request.allowance = allowance
        wall = self._clock()
        seconds = min(_LOOK_SECONDS, HOUR_SECONDS - wall % HOUR_SECONDS)
        if standing is not None:
            allowance.known = self._quotas.known(key.key_id)
            seconds = min(seconds, allowance.known.spendable_until - wall)
        allowance.until = self._monotonic() + seconds
        if decision is not None:
            allowance.token_lease = lease = self._limiter.token_lease(key.key_id)
            allowance.until = min(allowance.until, lease.renew_at) if lease is not None else 0.0
        allowance.tallies.clear()  # they may be the last hour's
        if not allowance.tail or decision is not allowance.decision or standing is not allowance.standing:
            allowance.show(decision, standing)

    def count(self, request: Request, status: int, outcome: str, number: int = 1) -> None:
        """Counts a request that has ended as its key's usage, or `number` of them."""
        allowance = request.allowance
        if allowance is not None and (tally := allowance.tallies.get(outcome)) is not None and not tally.closed:
            tally.n += number
            return
        usage, key = outcome_of(status, outcome), request.key
        if usage is None or key is None or request.area not in self._areas:
            return
        tally = self._counters.count(key.key_id, request.area, usage, number)
        if allowance is not None:
            allowance.tallies[outcome] = tally


def _most_together(terms: Terms) -> int:
    """Returns how many requests could ever pass together. There is a rate or a quota."""
    bounds = [pace_of(terms.rate).burst] if terms.rate is not None else []
    return min([*bounds, terms.quota.requests] if terms.quota is not None else bounds)


def _hint_for_too_many(number: int, left: int) -> str | None:
    """Returns what to do if fewer are left than a request counts as.

    None if none is left: the code's own advice covers it.
    """
    if not left:
        return None
    return f"This batch counts as {number} requests; {left} are left. Send at most {left}, or retry later."
