"""Entitlement, quota and rate of a key before an answer, its usage after it.

Only data areas are metered. The index and the OpenAPI description are neither counted nor limited; the usage report
has a bound of its own (http/own_usage/recent.py).
"""

import time
from collections.abc import Callable
from functools import partial

from service.base.terms import Quota, Rate, Terms
from service.base.tracing import step
from service.edge.admission.verdicts import Ask, Ruling
from service.http.errors import problem
from service.http.head import RequestHead
from service.http.ratelimit import limit_headers, limit_lines, quota_exhausted_headers, rate_limited_headers
from service.http.reply import Header
from service.keys.record import ApiKey
from service.quota.batch import UsageOutcome
from service.quota.gcra import Decision, pace_of
from service.quota.holding import Holding
from service.quota.known import Known, QuotaState
from service.quota.names import HOUR_SECONDS
from service.quota.quotas import QuotaGuard
from service.quota.rates import RateLimiter
from service.quota.usage import Tally, UsageCounters, outcome_of

_REPEATED = "zip_code"  # the parameter that a request which counts as several has several of
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
# How long an allowance is good without another look at the time of day and at what was counted.
_LOOK_SECONDS = 1.0
# A refusal for lack of quota is good for this long without another look at the time that is left.
_QUOTA_SECONDS = 0.1
_FOR_EVER = float("inf")


class Allowance:
    """What a key passes with in one area. The worker's `Admission` owns it, until the key's record changes.

    It is kept because making it costs more than deciding.
    """

    __slots__ = ("_unbilled", "decision", "holding", "key", "known", "standing", "tail", "tallies", "unread", "until")

    def __init__(self, key: ApiKey) -> None:
        self.key = key
        self.until = 0.0  # monotonic seconds; before then it is good without another look
        self.tail = b""  # the end of an answer's head: the limits, as `decision` and `standing` say
        self.tallies: dict[UsageOutcome, Tally] = {}  # of this hour's answers
        self.holding: Holding | None = None  # None if the key has no rate
        self.known: Known | None = None  # None if the key has no quota
        self.decision: Decision | None = None
        self.standing: QuotaState | None = None
        self.unread = False  # whether the total of the quota has to be read before anything else
        self._unbilled: bytes | None = None

    def tell(self, decision: Decision | None, standing: QuotaState | None) -> None:
        """Writes `tail` anew. Of a quota it takes off this answer, and a thousandth, so that it is true for longer; but
        no more than what needs no warning."""
        self.decision, self.standing, self._unbilled = decision, standing, None
        if standing is not None:
            standing = standing.after(1 + _ahead(standing))
        self.tail = self._tail(standing)

    @property
    def unbilled(self) -> bytes:
        """`tail` for an answer that takes nothing off a quota but the thousandth, so that it is true for as long."""
        if self._unbilled is None:
            standing = self.standing
            self._unbilled = self.tail if standing is None else self._tail(standing.after(_ahead(standing)))
        return self._unbilled

    def _tail(self, standing: QuotaState | None) -> bytes:
        return b"\r\n%s\r\n" % limit_lines(self.key.terms.rate, self.decision, self.key.terms.quota, standing)


class Admission:
    """Admits and counts what keys ask for. One per worker, which owns it. `areas` are the names of the metered areas.

    The direct answer calls `admit`, and `ask` where that was not enough; the router path calls `refusal`.
    """

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
        self._allowances: dict[str, dict[str, Allowance]] = {area: {} for area in areas}

    def refusal(self, head: RequestHead, key: ApiKey, number: int = 1) -> Ruling:
        """The 403 or 429 that ends the request here, or None if it may go on; then `head` says what is left.

        A request that counts as `number` passes as a whole or not at all, and is a 400 if it never could.
        """
        area, terms = head.area, key.terms
        if area not in self._areas:
            return None
        if terms.areas is not None and area not in terms.areas:
            head.refused_until = _FOR_EVER
            return problem("not_entitled", head.request_id, _NOT_ENTITLED.format(area=area))
        if terms.rate is None and terms.quota is None:
            return None
        most = _most_together(terms)
        if number > most:
            detail = _TOO_MANY.format(number=number, most=most)
            return problem("invalid_parameter", head.request_id, detail, _REPEATED)
        # the quota first: what it refuses takes no token of the rate
        ruling = self._refusal_of_quota(head, key, number) or self._refusal_of_rate(head, key, number)
        if ruling is None:
            if head.standing is None:
                head.limits = _limits(terms, head.decision, None)
            else:
                head.limits_after = partial(_limits, terms, head.decision, head.standing)
        return ruling

    def _refusal_of_quota(self, head: RequestHead, key: ApiKey, number: int) -> Ruling:
        quota = key.terms.quota
        if quota is None:
            return None
        standing = head.standing or self._quotas.check(key.key_id, quota, self._clock(), number)
        if standing is None:
            return Ask(partial(self._ask_quota, head, key, quota, number))
        head.standing = standing
        if standing.withheld:
            return problem("unavailable", head.request_id, _QUOTA_UNKNOWN)
        if standing.remaining >= number:
            return None
        if number == 1:
            head.refused_until = time.monotonic() + _QUOTA_SECONDS
        limits = quota_exhausted_headers(key.terms.rate, quota, standing)
        return problem("quota_exhausted", head.request_id, _few(number, standing.remaining), headers=limits)

    def _refusal_of_rate(self, head: RequestHead, key: ApiKey, number: int) -> Ruling:
        rate = key.terms.rate
        if rate is None:
            return None
        decision = head.decision or (self._limiter.try_take(key.key_id, rate) if number == 1 else None)
        if decision is None:
            return Ask(partial(self._ask_rate, head, key, rate, number))
        head.decision = decision
        if decision.allowed:
            return None
        if number == 1:
            # until a second less is left to wait
            head.refused_until = self._limiter.denied_until(key.key_id) - (decision.retry_after - 1)
        limits = rate_limited_headers(rate, decision, key.terms.quota, head.standing)
        return problem("rate_limited", head.request_id, _few(number, decision.remaining), headers=limits)

    async def _ask_quota(self, head: RequestHead, key: ApiKey, quota: Quota, number: int) -> None:
        with step("quota"):
            head.standing = await self._quotas.standing(key.key_id, quota, number)

    async def _ask_rate(self, head: RequestHead, key: ApiKey, rate: Rate, number: int) -> None:
        with step("rate"):
            if number == 1:
                head.decision = await self._limiter.take(key.key_id, rate)
            else:
                head.decision = await self._limiter.take_together(key.key_id, rate, number)

    def admit(self, key: ApiKey, area: str, now: float) -> Allowance | None:
        """What a request passes with if it may go on and neither store has to be asked. Takes a token of the rate.

        None: `refusal` decides, and no token was taken. `now` is in monotonic seconds, `area` is a metered one.
        """
        allowance = self._allowances[area].get(key.key_id)
        if allowance is None or allowance.key is not key or now >= allowance.until:
            return self._admit_anew(key, area, now)
        known = allowance.known
        if known is not None:
            if not known.quick or known.state is not allowance.standing:
                return self._admit_anew(key, area, now)
            # inline, as is the holding's token below: a call of a method would add 2 % to a hot answer
            known.quick -= 1
        holding = allowance.holding
        if holding is not None:
            if holding.tokens > holding.low and now < holding.renew_at:
                holding.tokens -= 1
                holding.spent += 1
                if allowance.decision is not holding.passed:
                    allowance.tell(holding.passed, allowance.standing)
            elif holding.denies(now) or not self._spend_rate(allowance, allowance.standing, now):
                return None
        return allowance

    def expect(self, key: ApiKey) -> None:
        """Requests wait for something else before they can be admitted. The total of the quota is read meanwhile, so
        that they do not wait again."""
        if key.terms.quota is not None:
            self._quotas.expect(key.key_id, self._clock())

    def may_admit(self, key: ApiKey, area: str, now: float) -> bool:
        """Whether `admit` or `ask` would probably let a request pass, so that its answer is worth a look-up. Takes
        nothing."""
        terms, key_id = key.terms, key.key_id
        return (
            (terms.areas is None or area in terms.areas)
            and (
                terms.rate is None
                or self._limiter.has_tokens(key_id, now)
                or self._limiter.may_ask(key_id, terms.rate, now)
            )
            and (terms.quota is None or self._quotas.lets_pass(key_id))
        )

    def ask(self, key: ApiKey, area: str, now: float, told: Callable[[Allowance | None], None]) -> bool:
        """Asks for a request that `admit` did not let pass: for the total of its quota first, and the rates then. If
        this returns True, `told` is called in a later turn, with what the request passes with, or None if it may not.
        False: nobody is asked, `refusal` decides."""
        allowance = self._allowances[area].get(key.key_id)
        if allowance is None or allowance.key is not key:
            return False
        if not allowance.unread:
            return self._ask_rates(allowance, now, told)

        def primed() -> None:
            now = time.monotonic()
            admitted = self.admit(key, area, now)
            if admitted is not None or not self._ask_rates(allowance, now, told):
                told(admitted)

        self._quotas.when_primed(key.key_id, primed)
        return True

    def _ask_rates(self, allowance: Allowance, now: float, told: Callable[[Allowance | None], None]) -> bool:
        key_id, rate = allowance.key.key_id, allowance.key.terms.rate
        # before `until`, it was the rate that had no answer
        if rate is None or now >= allowance.until or not self._limiter.may_ask(key_id, rate, now):
            return False
        self._limiter.ask(key_id, rate, lambda decision: told(self._allowed(allowance, decision)))
        return True

    def _allowed(self, allowance: Allowance, decision: Decision) -> Allowance | None:
        if not decision.allowed:
            return None
        holding = self._limiter.holding(allowance.key.key_id)
        if holding is not None and not holding.alone:
            decision = holding.passed  # one for all who waited, and true for each
        if decision is not allowance.decision:
            allowance.tell(decision, allowance.standing)
        return allowance

    def _allowance(self, key: ApiKey, area: str) -> Allowance:
        kept = self._allowances[area]
        allowance = kept.get(key.key_id)
        if allowance is None or allowance.key is not key:
            if len(kept) >= _MOST_ALLOWANCES:
                kept.clear()
            allowance = kept[key.key_id] = Allowance(key)
        return allowance

    def _admit_anew(self, key: ApiKey, area: str, now: float) -> Allowance | None:
        """`admit` with a look at the time of day, and at what was counted."""
        terms = key.terms
        if terms.areas is not None and area not in terms.areas:
            return None
        allowance = self._allowance(key, area)
        wall = self._clock()
        seconds = min(_LOOK_SECONDS, HOUR_SECONDS - wall % HOUR_SECONDS)
        standing = None
        allowance.until = 0.0
        if terms.quota is not None:
            standing = self._quotas.check(key.key_id, terms.quota, wall)
            allowance.unread = standing is None
            if standing is None or not standing.unwarned:
                return None  # the router path adds the warning
            known = allowance.known = self._quotas.known(key.key_id)
            seconds = min(seconds, known.quick_until - wall)
        allowance.tallies.clear()  # they may be the last hour's
        if not self._spend_rate(allowance, standing, now):
            allowance.holding = self._limiter.holding(key.key_id)
            if allowance.holding is not None:  # next time `admit` need not look again, only find a token
                allowance.until = now + seconds
                allowance.tell(allowance.decision, standing)
            return None
        allowance.until = now + seconds
        return allowance

    def _spend_rate(self, allowance: Allowance, standing: QuotaState | None, now: float) -> bool:
        key_id, rate = allowance.key.key_id, allowance.key.terms.rate
        decision = None
        if rate is not None:
            decision = self._limiter.try_take(key_id, rate, now)
            if decision is None or not decision.allowed:
                return False
            allowance.holding = self._limiter.holding(key_id)
        if not allowance.tail or decision is not allowance.decision or standing is not allowance.standing:
            allowance.tell(decision, standing)
        return True

    def count_allowed(self, allowance: Allowance, area: str, outcome: UsageOutcome) -> None:
        """Counts an answer that `admit` let pass. The allowance then has its tally, to add to until it is closed."""
        allowance.tallies[outcome] = self._counters.count(allowance.key.key_id, area, outcome)

    def count_denied(self, key: ApiKey, area: str, outcome: UsageOutcome, now: float) -> tuple[Tally, float]:
        """Counts a refusal. Its tally may be added to until it is closed, and until then, in monotonic seconds."""
        wall = self._clock()
        tally = self._counters.count(key.key_id, area, outcome)
        return tally, now + min(_LOOK_SECONDS, HOUR_SECONDS - wall % HOUR_SECONDS)

    def count(self, key: ApiKey, area: str, status: int, outcome: str, number: int = 1) -> None:
        """Counts a request that has ended, or `number` of them, by how it was answered."""
        if area in self._areas:
            counted = outcome_of(status, outcome)
            if counted is not None:
                self._counters.count(key.key_id, area, counted, number)


def _most_together(terms: Terms) -> int:
    """How many requests could ever pass together. There is a rate or a quota."""
    bounds = [pace_of(terms.rate).burst] if terms.rate is not None else []
    return min([*bounds, terms.quota.requests] if terms.quota is not None else bounds)


def _few(number: int, left: int) -> str | None:
    """What to do if fewer are left than a request counts as. None if none is left: the code's own advice says it."""
    if not left:
        return None
    return f"This request counts as {number}, and {left} may pass now. Ask for fewer, or wait as Retry-After says."


def _ahead(standing: QuotaState) -> int:
    """How many answers beyond its own an allowance tells of as used, so that its lines stay true for so many more."""
    return max(0, min(standing.remaining // 1000, standing.unwarned - 1))


def _limits(
    terms: Terms, decision: Decision | None, standing: QuotaState | None, billed: int = 0
) -> tuple[Header, ...]:
    standing = standing.after(billed) if standing is not None else None
    limits = limit_headers(terms.rate, decision, terms.quota, standing)
    if terms.quota is not None and standing is not None and standing.warning:
        text = b"%d of %d used this %s" % (standing.used, terms.quota.requests, terms.quota.period.encode())
        return (*limits, (b"x-quota-warning", text))
    return limits
