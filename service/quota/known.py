"""What one worker knows of one key's quota. No clock, no store: `quotas.py` brings both."""

import math

from service.quota.usage_store import Totals
from service.terms import Quota

TRUST_SECONDS = 1.0


class Known:
    """Of one key. Learned `at`, good `until` (seconds since 1970), and for `left` more requests.

    `base` is the stored total of the period under `quota` that is from the day `first` to before the day `end`, that is
    from `begins` to before `ends`. `asked` is the place of the question that brought it among all questions.
    """

    __slots__ = ("asked", "at", "base", "begins", "end", "ends", "first", "left", "quota", "totals", "until")

    def __init__(self, totals: Totals) -> None:
        self.totals = totals
        self.quota: Quota | None = None
        self.at = self.until = self.begins = self.ends = -math.inf
        self.asked = self.base = self.first = self.end = self.left = 0

    def good(self, now: float, left: int) -> None:
        self.at, self.until, self.left = now, now + TRUST_SECONDS, left

    def of(self, quota: Quota, totals: Totals) -> int:
        """The total of the quota's period that `begins` and `ends` bound."""
        if not self.first <= totals.day < self.end:
            return 0
        return totals.of_day if quota.period == "day" else totals.of_month
