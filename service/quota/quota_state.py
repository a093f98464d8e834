"""One worker's view of one key's quota. Pure: `quotas.py` has the clock and the store."""

import math

import msgspec

from service.base.terms import Quota
from service.quota.names import DAY_SECONDS
from service.quota.usage_store import HOLD_SECONDS, Claim, Totals

TRUST_SECONDS = 1.0
# All workers together may hold one in this many of the remaining requests beyond those that wait.
_PART = 4
_LEAST_PART = 4


class QuotaState(msgspec.Struct, frozen=True):
    """How much of a quota is used, as one answer shows it."""

    used: int  # may exceed the quota (overshoot)
    remaining: int
    resets_in: int  # seconds until the period ends, at least 1
    window: int  # seconds of the whole period
    exhausted: bool
    warn_from: int  # used ones from which answers carry a warning
    # It is unknown whether the quota is exhausted: other workers hold the rest, or the key store is unreachable and
    # this worker has spent its share.
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
    them itself. If `is_held`, the store holds them for this worker (usage.lua).

    `base` is the stored total of the period of `quota`: from the day `first` to before the day `end`, or from `begins`
    to before `ends` in seconds since 1970. `call` numbers the call that returned it; `claim` is that of the newest
    call.

    `most` may be used before the store replies again: this worker's share of what was left. It applies while the worker
    is `cut_off`: the store is unreachable, or was a moment ago.
    """

    def __init__(self) -> None:
        self.totals = Totals(0, 0, 0)
        self.quota: Quota | None = None
        self.state: QuotaState | None = None
        self.claim: Claim | None = None
        self.at = self.until = self.begins = self.ends = self.spendable_until = -math.inf
        self.call = self.base = self.first = self.end = self.spendable = self.warn_from = 0
        self.most, self.cut_off, self.is_held = 0, False, False
        self.waiting = 0  # how many wait for a grant
        self.is_dry = False  # the last grant was smaller than wanted
        # admitted requests that await their answer, by id(): since when, and how many they count as
        self.under_way: dict[int, tuple[float, int]] = {}
        self._earlier, self._earlier_at = 0, -math.inf  # a `base` for the next `most`, and when it was read
        self._beyond = 0  # the part of `left` beyond `spendable`

    @property
    def left(self) -> int:
        return self._beyond + self.spendable

    def learn(self, totals: Totals, call: int) -> None:
        """Sets the `totals` that the store replied to the call numbered `call`."""
        self.call, self.totals = call, totals
        if self.quota is not None:
            self.base = self._of_period(self.quota)

    def adopt(self, quota: Quota, first: int, end: int, workers: int) -> None:
        """Sets this quota, in its period from the day `first` to before the day `end`, for one of the `workers`. It may
        be the same quota, decoded again.
        """
        is_news = quota != self.quota or (first, end) != (self.first, self.end)
        self.quota, self.warn_from = quota, quota.warn_from
        self.first, self.end = first, end
        self.begins, self.ends = float(first * DAY_SECONDS), float(end * DAY_SECONDS)
        self.base = self._of_period(quota)
        if is_news:  # grants were of the old quota
            self.trust(self.at, 0)
            self.claim = None
            self._earlier_at = -math.inf
            self.share(workers, self.at)

    def trust(self, at: float, left: int, *, is_held: bool = False) -> None:
        """Trusts the total from then on, for `left` requests."""
        self.at, self.until = at, at + TRUST_SECONDS
        self.spendable, self._beyond, self.is_held = 0, left, is_held

    def spend(self, number: int = 1) -> bool:
        """Admits `number` requests; returns whether more may follow before the next call to the store."""
        self._beyond -= number
        return self.left > 0

    def share(self, workers: int, now: float) -> None:
        """Sets `most` to one of the `workers`' share of what was left TRUST_SECONDS or longer ago. What all have stored
        since uses it up: another worker may have read the total last at that time, and spend its share of that.
        """
        if self.quota is None or (self.base >= self._earlier and 0 <= now - self._earlier_at < TRUST_SECONDS):
            return
        if self.base < self._earlier or self._earlier_at == -math.inf:
            self._earlier = self.base
        self.most = self._earlier + max(0, self.quota.requests - self._earlier) // workers
        self._earlier, self._earlier_at = self.base, now

    def make_claim(self, used: int, unsent: int, workers: int, now: float) -> Claim | None:
        """Returns the claim of a call, with `used` requests counted `now`, of which `unsent` are in no stored batch and
        not in the call's. None without a quota.

        It wants one _PART of this worker's share of what is left, or as many as wait. It gives back what is left beyond
        that. If the part is small, it wants only those that wait, so that idle workers hold nothing back.
        """
        self.claim = None
        if self.quota is None:
            return None
        part = (self.quota.requests - used) // (_PART * workers)
        target = max(self.waiting, part if part >= _LEAST_PART else 0)
        if self.cut_off:
            target = max(0, min(target, self.most - used))
        kept = 0
        if self.is_held:
            kept = min(self.left, target) if now < self.until else 0
            if kept < self.left:
                self.spendable, self._beyond = 0, kept
        for one in [one for one, (since, _) in self.under_way.items() if now - since >= HOLD_SECONDS]:
            del self.under_way[one]
        waits = sum(number for _, number in self.under_way.values())
        self.claim = Claim(self.quota, unsent + waits + kept, target - kept, now)
        return self.claim

    def take_grant(self, totals: Totals) -> None:
        """Adds what the newest call was granted. The grant of an earlier call is void: the newest has replaced it."""
        claim = totals.claim
        if claim is not None and claim is self.claim:
            self.is_dry = totals.granted < claim.wanted
            self.trust(claim.at, totals.granted + (self.left if self.is_held else 0), is_held=True)

    def withheld(self, quota: Quota, used: int, now: float) -> QuotaState:
        """Returns the state of a quota of which it is unknown whether others use the rest."""
        return msgspec.structs.replace(self.standing(quota, used, now, now), withheld=True)

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
