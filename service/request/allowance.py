"""The allowance of a key in one area, and the header lines with what is left of its limits."""

from collections.abc import Sequence

from service.keys.record import ApiKey
from service.quota.gcra import Decision
from service.quota.quota_state import QuotaReading, QuotaState
from service.quota.token_lease import TokenLease
from service.quota.usage import Tally
from service.request.limits import Limit, Passed
from service.request.ratelimit import limit_headers
from service.request.response import Header, lines_of


class SharedPart:
    """The part of an Allowance that all keys of a partner spend.

    Their other allowances spend it meanwhile, so `standing` may show more than is left while the allowance is valid.
    """

    __slots__ = ("decision", "limit", "reading", "standing", "tallies", "token_lease")

    def __init__(self, limit: Limit) -> None:
        self.limit = limit
        self.tallies: dict[str, Tally] = {}
        self.token_lease: TokenLease | None = None
        self.reading: QuotaReading | None = None
        self.decision: Decision | None = None
        self.standing: QuotaState | None = None

    def can_spend(self) -> bool:
        quota, lease = self.reading, self.token_lease
        return (quota is None or quota.spendable > 0) and (lease is None or lease.tokens > lease.low)

    def spend(self) -> bool:
        """Takes one of each; returns whether the rate's decision is a new one."""
        if self.reading is not None:
            self.reading.spendable -= 1
        if self.token_lease is None:
            return False
        self.token_lease.tokens -= 1
        is_news = self.decision is not self.token_lease.passed
        self.decision = self.token_lease.passed
        return is_news


class Allowance:
    """The allowance of a key in one area. The worker's `Admission` owns it, until the key's record changes.

    It is cached because creating it costs more than deciding.
    """

    __slots__ = (
        "_unbilled",
        "decision",
        "key",
        "limit",
        "reading",
        "shared",
        "standing",
        "tail",
        "tallies",
        "token_lease",
        "until",
    )  # fmt: skip

    def __init__(self, key: ApiKey, limit: Limit, shared: Limit | None = None) -> None:
        self.key = key
        self.limit = limit
        self.shared = None if shared is None else SharedPart(shared)
        self.until = 0.0  # monotonic seconds; until then it is valid without another check
        self.tail = b""  # the end of an answer's header lines: the limits, from `decision` and `standing`
        self.tallies: dict[str, Tally] = {}  # of this hour's answers, by outcome
        self.token_lease: TokenLease | None = None  # None if the key has no rate
        self.reading: QuotaReading | None = None  # None if the key has no quota
        self.decision: Decision | None = None
        self.standing: QuotaState | None = None
        self._unbilled: bytes | None = None

    @property
    def limits(self) -> tuple[Limit, ...]:
        return (self.limit,) if self.shared is None else (self.limit, self.shared.limit)

    def spend(self, now: float) -> bool:
        """Takes one off the quota and a token of the rate, if neither needs another check."""
        quota, lease, shared = self.reading, self.token_lease, self.shared
        if now >= self.until or (quota is not None and (not quota.spendable or quota.state is not self.standing)):
            return False
        if lease is not None and lease.tokens <= lease.low:
            return False
        if shared is not None:
            if not shared.can_spend():
                return False
            if shared.spend():
                self.show(self.decision, self.standing)
        if lease is not None:
            lease.tokens -= 1
            if self.decision is not lease.passed:
                self.show(lease.passed, self.standing)
        if quota is not None:
            quota.spendable -= 1
        return True

    def show(self, decision: Decision | None, standing: QuotaState | None) -> None:
        """Writes `tail` for this answer and the next ones: a thousandth of each quota is shown as used, but less than
        would need a warning.
        """
        shared = None if self.shared is None else self.shared.standing
        ahead = min(
            (max(0, min(one.remaining // 1000, one.unwarned - 1)) for one in (standing, shared) if one is not None),
            default=0,
        )
        self.update(decision, standing, ahead)

    def update(self, decision: Decision | None, standing: QuotaState | None, ahead: int = 0) -> None:
        """Writes `tail` for an answer that takes 1 off each quota.

        `ahead` more are shown as used, so that it stays true for so many more answers.
        """
        self.decision, self.standing, self._unbilled = decision, standing, None
        self.tail = self.tail_after(1 + ahead)
        if ahead:
            self._unbilled = self.tail_after(ahead)

    @property
    def unbilled(self) -> bytes:
        """`tail` for an answer that is not billed."""
        if self._unbilled is None:
            self._unbilled = self.tail_after(0)
        return self._unbilled

    def tail_after(self, billed: int) -> bytes:
        """Returns `tail` for an answer that takes so much off each quota."""
        passed = [Passed(self.limit, self.decision, self.standing and self.standing.after(billed))]
        if (shared := self.shared) is not None:
            passed.append(Passed(shared.limit, shared.decision, shared.standing and shared.standing.after(billed)))
        return b"\r\n%b\r\n" % lines_of(_fields(passed))


def _fields(passed: Sequence[Passed]) -> tuple[Header, ...]:
    fields = limit_headers(passed)
    for limit, _, standing in passed:
        if limit.quota is not None and standing is not None and standing.warning:
            by = b" by all keys of your account" if limit.prefix else b""
            text = b"%d of %d used this %s%b" % (standing.used, limit.quota.requests, limit.quota.period.encode(), by)
            return (*fields, (b"x-quota-warning", text))
    return fields
