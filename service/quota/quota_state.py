"""One worker's view of one key's quota. Pure: `quotas.py` has the clock and the store."""

import math

import msgspec

from service.base.terms import Quota
from service.quota.names import DAY_SECONDS
from service.quota.usage_store import Totals

TRUST_SECONDS = 1.0
UNBOUNDED = 1 << 60  # requests


class QuotaState(msgspec.Struct, frozen=True):
    """How much of a quota is used, as one answer shows it."""

    used: int  # may exceed the quota (overshoot)
    remaining: int
    resets_in: int  # seconds until the period ends, at least 1
    window: int  # seconds of the whole period
    exhausted: bool
    warn_from: int  # used ones from which answers carry a warning
    # The key store is unreachable, and this worker has spent its share: it is unknown whether the quota is exhausted.
    withheld: bool = False

    @property
    def warning(self) -> bool:
        return self.used >= self.warn_from

    @property
    def unwarned(self) -> int:
        """Number of next billable answers without a warning. Each shows what is left after it, and whether to warn."""
        return 0 if self.withheld else max(0, self.warn_from - 1 - self.used)

    def after(self, billed: int) -> "QuotaState":
        """Returns the state after so many more billable answers."""
        return msgspec.structs.replace(self, used=self.used + billed, remaining=max(0, self.remaining - billed))


class QuotaReading:
    """The usage of one key as one worker's QuotaGuard last read it; kept for as long as the worker lives.

    It was read `at`, and is trusted `until` (both in seconds since 1970) and for `left` more requests. Of these,
    `spendable` pass before `spendable_until` with the last `state`, without a check of the counts: `admit` may spend
    them itself.

    `base` is the stored total of the period of `quota`: from the day `first` to before the day `end`, or from `begins`
    to before `ends` in seconds since 1970. `asked` numbers the call that returned it.

    `most` may be used before the store replies again: this worker's share of what was left. It applies while the worker
    is `cut_off`: the store is unreachable, or was a moment ago.
    """

    __slots__ = (
        "_beyond",
        "_earlier",
        "_recent",
        "asked",
        "at",
        "base",
        "begins",
        "cut_off",
        "end",
        "ends",
        "first",
        "most",
        "quota",
        "spendable",
        "spendable_until",
        "state",
        "totals",
        "until",
        "warn_from",
    )  # fmt: skip

    def __init__(self, totals: Totals) -> None:
        self.totals = totals
        self.quota: Quota | None = None
        self.state: QuotaState | None = None
        self.at = self.until = self.begins = self.ends = self.spendable_until = -math.inf
        self.asked = self.base = self.first = self.end = self.spendable = self.warn_from = 0
        self.most, self.cut_off = UNBOUNDED, False
        self._earlier = 0  # `base` at least TRUST_SECONDS before the last one
        self._recent: tuple[float, int] | None = None  # when the next `_earlier` was read, and its value
        self._beyond = 0  # the part of `left` beyond `spendable`

    @property
    def left(self) -> int:
        return self._beyond + self.spendable

    def learn(self, totals: Totals, asked: int) -> None:
        """Sets the `totals` that the store replied to the call numbered `asked`."""
        self.asked, self.totals = asked, totals
        if self.quota is not None:
            self.base = self._of_period(self.quota)

    def adopt(self, quota: Quota, first: int, end: int) -> bool:
        """Sets this quota, in its period from the day `first` to before the day `end`. Returns whether it differs: it
        may be the same quota, decoded again.
        """
        is_news = quota != self.quota or (first, end) != (self.first, self.end)
        if is_news:
            self._recent = None
        self.quota, self.warn_from = quota, quota.warn_from
        self.first, self.end = first, end
        self.begins, self.ends = float(first * DAY_SECONDS), float(end * DAY_SECONDS)
        self.base = self._of_period(quota)
        return is_news

    def good(self, now: float, left: int) -> None:
        """Trusts the total from `now` on, for `left` requests."""
        self.at, self.until = now, now + TRUST_SECONDS
        self.spendable, self._beyond = 0, left

    def limit(self, left: int) -> None:
        """Trusts the total for `left` requests, for the same time as before."""
        self._beyond = left - self.spendable

    def spend(self, number: int = 1) -> bool:
        """Admits `number` requests; returns whether more may follow before the next call to the store."""
        self._beyond -= number
        return self.left > 0

    def share(self, used: int, spare: int, workers: int, part: int, now: float) -> int:
        """Sets `most`, with `used` requests counted `now`, for one of the `workers`; while it is cut off, no more than
        the `spare` rest of its last share. Returns how many requests it may admit before its next call: one `part`th of
        its share, at least 1.

        The share is of what was left TRUST_SECONDS ago, less all that was stored since: another worker may have read
        the total last at that time, and spend its share of that.
        """
        if self.quota is None:
            return 1
        total = self.quota.requests
        if self._recent is None or self.base < self._earlier:
            self._earlier, self._recent = self.base, (now, self.base)
        elif not 0 <= now - self._recent[0] < TRUST_SECONDS:
            self._earlier, self._recent = self._recent[1], (now, self.base)
        own = max(0, max(self.base, self._earlier + (total - self._earlier) // workers) - used)
        if self.cut_off:
            own = min(own, spare)
        self.most = used + own
        left = max(1, (total - used) // (part * workers))
        return min(left, own) if self.cut_off else left

    def standing(self, quota: Quota, used: int, now: float, spendable_until: float) -> QuotaState:
        """Returns the state with `used` requests counted `now`.

        The next thousandth of what is left needs no other check; the first answer with a warning needs one.
        """
        remaining, left = quota.requests - used, self.left
        self.spendable = max(0, min(left - 1, remaining // 1000, self.warn_from - used - 2))
        self._beyond = left - self.spendable
        self.spendable_until = min(spendable_until, self.ends)
        self.state = QuotaState(
            used,
            max(0, remaining),
            max(1, math.ceil(self.ends - now)),
            (self.end - self.first) * DAY_SECONDS,
            remaining <= 0,
            self.warn_from,
        )
        return self.state

    def _of_period(self, quota: Quota) -> int:
        """Returns the stored total of the quota's current period."""
        if not self.first <= self.totals.day < self.end:
            return 0
        return self.totals.of_day if quota.period == "day" else self.totals.of_month
