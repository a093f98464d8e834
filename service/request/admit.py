"""Checks entitlement, quota and rate of a key before an answer, and counts its usage after it.

Only data areas are metered. The index and the OpenAPI description are neither counted nor limited; the usage report
has a bound of its own (http/own_usage/usage.py).
"""

import time
from collections.abc import Callable, Coroutine
from itertools import zip_longest
from typing import Any

import msgspec

from service.base.tracing import step
from service.keys.record import ApiKey
from service.quota.batch import outcome_of
from service.quota.gcra import Decision
from service.quota.names import HOUR_SECONDS, partner_id
from service.quota.quota_state import QuotaState
from service.quota.quotas import QuotaGuard
from service.quota.rates import RateLimiter
from service.quota.usage import UsageCounters
from service.request.allowance import Allowance, SharedPart
from service.request.errors import problem
from service.request.limits import OF_KEY, Limit, Passed, limits_of_key, most_together
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


class _Attempt(msgspec.Struct):
    """A request, or several in one, on its way through the limits of its key."""

    request: Request
    key: ApiKey
    limits: tuple[Limit, ...]
    number: int
    standings: list[QuotaState | None] = []  # of the first limits
    passed: list[Passed] = []  # likewise

    def known(self) -> list[Passed]:
        """Returns what is known of each limit."""
        unpassed = [Passed(limit, None, standing) for limit, standing in zip_longest(self.limits, self.standings)]
        return [*self.passed, *unpassed[len(self.passed) :]]


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
        limits = limits_of_key(key)
        if limits and number > (most := most_together(limits)):
            return problem("invalid_parameter", _TOO_MANY.format(number=number, most=most), _REPEATED)
        attempt = _Attempt(request, key, limits, number)
        # quotas first: a request that one refuses takes no token of a rate
        for limit in limits:
            standing = None
            if limit.quota is not None:
                standing = self._quotas.check(limit.holder, limit.quota, self._clock(), number)
                if standing is None:
                    return self._wait(_Attempt(request, key, limits, number))
            if refused := self._refused_by_quota(attempt, standing):
                return refused
        return self._take(attempt)

    def _take(self, attempt: _Attempt) -> Response | Coroutine[Any, Any, Response | None] | None:
        """Takes the tokens of all limits."""
        for limit in attempt.limits:
            decision = None
            if limit.rate is not None:
                decision = self._limiter.try_take(limit.holder, limit.rate, attempt.number)
                if decision is None:
                    self._begin(attempt.request, attempt.limits, attempt.number)
                    return self._wait_for_rates(attempt)
            if refused := self._refused_by_rate(attempt, decision):
                return refused
        self._allow(attempt)
        return None

    async def _wait(self, attempt: _Attempt) -> Response | None:
        """Waits for the totals of the quotas, then for the rates."""
        for limit in attempt.limits:
            standing = None
            if limit.quota is not None:
                with step("quota"):
                    standing = await self._quotas.standing(limit.holder, limit.quota, attempt.number)
            if refused := self._refused_by_quota(attempt, standing):
                return refused
            self._begin(attempt.request, (limit,), attempt.number)
        return await self._wait_for_rates(attempt)

    async def _wait_for_rates(self, attempt: _Attempt) -> Response | None:
        """Takes the tokens of the limits that are not passed yet."""
        for limit in attempt.limits[len(attempt.passed) :]:
            decision = None
            if limit.rate is not None:
                with step("rate"):
                    decision = await self._limiter.take(limit.holder, limit.rate, attempt.number)
            if refused := self._refused_by_rate(attempt, decision):
                return refused
        self._allow(attempt)
        return None

    def _refused_by_quota(self, attempt: _Attempt, standing: QuotaState | None) -> Response | None:
        """Adds the state of the next limit's quota. Returns the refusal if it refuses."""
        attempt.standings.append(standing)
        number = attempt.number
        if standing is None:
            return None
        if standing.withheld:
            return problem("unavailable", _QUOTA_UNKNOWN)
        if standing.remaining >= number:
            return None
        headers = quota_exhausted_headers(attempt.known(), len(attempt.standings) - 1)
        response = problem("quota_exhausted", _hint_for_too_many(number, standing.remaining), headers=headers)
        until = self._monotonic() + _QUOTA_SECONDS if number == 1 else 0.0
        return self._refuse(attempt.key, attempt.request.area, response, until)

    def _refused_by_rate(self, attempt: _Attempt, decision: Decision | None) -> Response | None:
        """Adds the decision of the next limit's rate. Returns the refusal if it refuses."""
        at, number = len(attempt.passed), attempt.number
        limit = attempt.limits[at]
        attempt.passed.append(Passed(limit, decision, attempt.standings[at]))
        if decision is None or decision.allowed:
            return None
        headers = rate_limited_headers(attempt.known(), at)
        response = problem("rate_limited", _hint_for_too_many(number, decision.remaining), headers=headers)
        # until a second less is left to wait
        until = self._limiter.denied_until(limit.holder) - (decision.retry_after - 1) if number == 1 else 0.0
        return self._refuse(attempt.key, attempt.request.area, response, until)

    def _refuse(self, key: ApiKey, area: str, response: Response, until: float) -> Response:
        """Keeps the refusal until then, in monotonic seconds."""
        if until > self._monotonic():
            if len(self._refusals) >= _MOST_REFUSALS:
                self._refusals.clear()
            self._refusals[key.key_id, area] = Refusal(key, response, until)
        return response

    def _allow(self, attempt: _Attempt) -> None:
        """Sets the request's allowance. It is kept for the key's next requests, unless it has a warning."""
        request, key, passed = attempt.request, attempt.key, attempt.passed
        own = passed[0] if passed and not passed[0].limit.prefix else Passed(Limit(key.key_id, OF_KEY, None, None))
        others = passed[-1] if passed and passed[-1].limit.prefix else None
        kept = self._allowances[request.area]
        is_kept = attempt.number == 1 and all(one.standing is None or one.standing.unwarned for one in passed)
        allowance = kept.get(key.key_id) if is_kept else None
        if allowance is None or allowance.key is not key:
            allowance = Allowance(key, own.limit, others and others.limit)
        request.allowance = allowance
        shared = allowance.shared
        is_news = not allowance.tail or own.decision is not allowance.decision or own.standing is not allowance.standing
        if shared is not None and others is not None:
            is_news = is_news or others.decision is not shared.decision or others.standing is not shared.standing
            shared.decision, shared.standing = others.decision, others.standing
        if not is_kept:
            allowance.update(own.decision, own.standing)
            return
        if len(kept) >= _MOST_ALLOWANCES:
            kept.clear()
        kept[key.key_id] = allowance
        self._let_spend(allowance, passed)
        allowance.tallies.clear()  # they may be the last hour's
        if shared is not None:
            shared.tallies.clear()
        if is_news:
            allowance.show(own.decision, own.standing)

    def _let_spend(self, allowance: Allowance, passed: list[Passed]) -> None:
        """Lets the allowance spend what is known of the limits, for as long as that is valid."""
        wall, now = self._clock(), self._monotonic()
        allowance.until = now + min(_LOOK_SECONDS, HOUR_SECONDS - wall % HOUR_SECONDS)
        for limit, decision, standing in passed:
            part: Allowance | SharedPart = allowance
            if limit.prefix and allowance.shared is not None:
                part = allowance.shared
            if standing is not None:
                part.reading = self._quotas.reading(limit.holder)
                allowance.until = min(allowance.until, now + part.reading.spendable_until - wall)
            if decision is not None:
                part.token_lease = lease = self._limiter.token_lease(limit.holder)
                allowance.until = min(allowance.until, lease.renew_at) if lease is not None else 0.0

    def begin(self, request: Request) -> None:
        """Notes that the request awaits something, if it was admitted: its quotas hold it until `end`."""
        if request.allowance is not None:
            weigh = request.route and request.route.weigh
            self._begin(request, request.allowance.limits, weigh(request.query) if weigh else 1)

    def _begin(self, request: Request, limits: tuple[Limit, ...], number: int) -> None:
        for limit in limits:
            if limit.quota is not None:
                self._quotas.begin(limit.holder, id(request), number)

    def end(self, request: Request) -> None:
        """Notes that the request was counted, or will not be."""
        key, allowance = request.key, request.allowance
        limits = () if key is None else limits_of_key(key) if allowance is None else allowance.limits
        for limit in limits:
            if limit.quota is not None:
                self._quotas.end(limit.holder, id(request))

    def count(self, request: Request, status: int, outcome: str, number: int = 1) -> None:
        """Counts a request that has ended as its key's usage, or `number` of them; and as its partner's, if all keys of
        that share a quota."""
        allowance = request.allowance
        if allowance is not None and (tally := allowance.tallies.get(outcome)) is not None and not tally.closed:
            shared = allowance.shared
            if shared is None or shared.limit.quota is None:
                tally.n += number
                return
            if (other := shared.tallies.get(outcome)) is not None and not other.closed:
                tally.n += number
                other.n += number
                return
        usage, key = outcome_of(status, outcome), request.key
        if usage is None or key is None or request.area not in self._areas:
            return
        tally = self._counters.count(key.key_id, request.area, usage, number)
        if allowance is not None:
            allowance.tallies[outcome] = tally
        if key.shared is not None and key.shared.terms.quota is not None:
            other = self._counters.count(partner_id(key.shared.name), request.area, usage, number)
            if allowance is not None and allowance.shared is not None:
                allowance.shared.tallies[outcome] = other


def _hint_for_too_many(number: int, left: int) -> str | None:
    """Returns what to do if fewer are left than a request counts as.

    None if none is left: the code's own advice covers it.
    """
    if not left:
        return None
    return f"This batch counts as {number} requests; {left} are left. Send at most {left}, or retry later."
