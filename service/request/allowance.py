"""The allowance of a key in one area, and the header lines with what is left of its limits."""

from service.base.terms import Terms
from service.keys.record import ApiKey
from service.quota.gcra import Decision
from service.quota.quota_state import QuotaReading, QuotaState
from service.quota.token_lease import TokenLease
from service.quota.usage import Tally
from service.request.ratelimit import limit_headers
from service.request.response import Header, lines_of


class Allowance:
    """The allowance of a key in one area. The worker's `Admission` owns it, until the key's record changes.

    It is cached because creating it costs more than deciding.
    """

    __slots__ = ("_unbilled", "decision", "key", "known", "standing", "tail", "tallies", "token_lease", "until")

    def __init__(self, key: ApiKey) -> None:
        self.key = key
        self.until = 0.0  # monotonic seconds; until then it is valid without another check
        self.tail = b""  # the end of an answer's header lines: the limits, from `decision` and `standing`
        self.tallies: dict[str, Tally] = {}  # of this hour's answers, by outcome
        self.token_lease: TokenLease | None = None  # None if the key has no rate
        self.known: QuotaReading | None = None  # None if the key has no quota
        self.decision: Decision | None = None
        self.standing: QuotaState | None = None
        self._unbilled: bytes | None = None

    def spend(self, now: float) -> bool:
        """Takes one off the quota and a token of the rate, if neither needs another check."""
        quota, lease = self.known, self.token_lease
        if now >= self.until or (quota is not None and (not quota.spendable or quota.state is not self.standing)):
            return False
        if lease is not None:
            if lease.tokens <= lease.low:
                return False
            lease.tokens -= 1
            if self.decision is not lease.passed:
                self.show(lease.passed, self.standing)
        if quota is not None:
            quota.spendable -= 1
        return True

    def show(self, decision: Decision | None, standing: QuotaState | None) -> None:
        """Writes `tail` for this answer and the next ones: a thousandth of the quota is shown as used, but less than
        would need a warning.
        """
        ahead = 0 if standing is None else max(0, min(standing.remaining // 1000, standing.unwarned - 1))
        self.update(decision, standing, ahead)

    def update(self, decision: Decision | None, standing: QuotaState | None, ahead: int = 0) -> None:
        """Writes `tail` for an answer that takes 1 off the quota. `ahead` more are shown as used, so that it stays true
        for so many more answers."""
        self.decision, self.standing, self._unbilled = decision, standing, None
        self.tail = self.tail_after(1 + ahead)
        if standing is not None and ahead:
            self._unbilled = self.tail_after(ahead)

    @property
    def unbilled(self) -> bytes:
        """`tail` for an answer that is not billed."""
        if self._unbilled is None:
            self._unbilled = self.tail if self.standing is None else self.tail_after(0)
        return self._unbilled

    def tail_after(self, billed: int) -> bytes:
        """Returns `tail` for an answer that takes so much off the quota."""
        standing = self.standing.after(billed) if self.standing is not None else None
        return b"\r\n%b\r\n" % lines_of(_limits(self.key.terms, self.decision, standing))


def _limits(terms: Terms, decision: Decision | None, standing: QuotaState | None) -> tuple[Header, ...]:
    limits = limit_headers(terms.rate, decision, terms.quota, standing)
    if terms.quota is not None and standing is not None and standing.warning:
        text = b"%d of %d used this %s" % (standing.used, terms.quota.requests, terms.quota.period.encode())
        return (*limits, (b"x-quota-warning", text))
    return limits
