"""What one worker knows of one key's quota. No clock, no store: `quotas.py` brings both."""

import math

import msgspec

from service.base.terms import Quota
from service.quota.names import DAY_SECONDS
from service.quota.usage_store import Totals

TRUST_SECONDS = 1.0


class QuotaState(msgspec.Struct, frozen=True):
    """`used` may exceed the quota (overshoot); `warning` from `warn_at` on.

    The period ends in `resets_in` seconds, at least 1, and has `window` seconds in all.
    """

    used: int
    remaining: int
    resets_in: int
    window: int
    exhausted: bool
    warning: bool


class Known:
    """Of one key. Learned `at`, good `until` (seconds since 1970), and for `left` more requests.

    Of these, `quick` more pass before `quick_until` as the last `state` said, without a look at what was counted:
    whoever has that state may spend them itself, from `quick` and `left`.

    `base` is the stored total of the period under `quota` that is from the day `first` to before the day `end`, that is
    from `begins` to before `ends`. `asked` is the place of the question that brought it among all questions.
    """

    __slots__ = (
        "asked",
        "at",
        "base",
        "begins",
        "end",
        "ends",
        "first",
        "left",
        "quick",
        "quick_until",
        "quota",
        "state",
        "totals",
        "until",
    )  # fmt: skip

    def __init__(self, totals: Totals) -> None:
        self.totals = totals
        self.quota: Quota | None = None
        self.state: QuotaState | None = None
        self.at = self.until = self.begins = self.ends = self.quick_until = -math.inf
        self.asked = self.base = self.first = self.end = self.left = self.quick = 0

    def learn(self, totals: Totals, asked: int) -> None:
        """The store told `totals` to the question numbered `asked`."""
        self.asked, self.totals = asked, totals
        if self.quota is not None:
            self.base = self._of_period(self.quota)

    def adopt(self, quota: Quota, first: int, end: int) -> bool:
        """From now on this quota, in its period from the day `first` to before the day `end`. Whether that is news:
        it may be the same quota, decoded again."""
        is_news = quota != self.quota or (first, end) != (self.first, self.end)
        self.quota = quota
        self.first, self.end = first, end
        self.begins, self.ends = float(first * DAY_SECONDS), float(end * DAY_SECONDS)
        self.base = self._of_period(quota)
        return is_news

    def good(self, now: float, left: int) -> None:
        """What is known is good from `now` on, for `left` requests."""
        self.at, self.until, self.left = now, now + TRUST_SECONDS, left
        self.quick = 0

    def limit(self, left: int) -> None:
        """It is good for `left` requests; for how long does not change."""
        self.left = left

    def spend(self) -> bool:
        """One request goes on. Whether more may, before the store is asked."""
        self.left -= 1
        return self.left > 0

    def standing(self, quota: Quota, used: int, now: float) -> QuotaState:
        """With `used` of it counted `now`. For a thousandth of what is left no other look is needed, unless that is
        beyond the level at which is warned."""
        remaining, level = quota.requests - used, quota.requests * quota.warn_at
        self.quick = max(0, min(self.left - 1, remaining // 1000, math.ceil(level) - used - 1))
        self.quick_until = min(self.until, self.ends)
        self.state = QuotaState(
            used,
            max(0, remaining),
            max(1, math.ceil(self.ends - now)),
            (self.end - self.first) * DAY_SECONDS,
            remaining <= 0,
            used >= level,
        )
        return self.state

    def _of_period(self, quota: Quota) -> int:
        """The stored total of the quota's period."""
        if not self.first <= self.totals.day < self.end:
            return 0
        return self.totals.of_day if quota.period == "day" else self.totals.of_month
