"""How much of its quota a key has used, known in the worker without asking anybody.

Known are the total of all workers, as the last flush brought it, and what this worker counted since. What other workers
admitted is missing for as long as it takes them to flush, and us to flush after that: a quota is overshot by at most
what all workers admit within two flush intervals (1 s), plus the requests that are under way at the moment. While the
store is away, every worker goes on from what it last knew, with its own counts.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from service.quota.names import DAY_SECONDS
from service.quota.usage import UsageCounters
from service.quota.usage_store import Totals, UsageStore
from service.redis.client import StoreUnavailable
from service.terms import Period, Quota, period_of

log = logging.getLogger("forecast.usage")

REFRESH_SECONDS = 1.0
_MOST_KNOWN = 100_000
_PERIODS: tuple[Period, ...] = ("day", "month")


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


class _Known:
    """`of_day`, `of_month` belong to `day` and its month; `at` is when they were learned, in monotonic seconds."""

    __slots__ = ("at", "totals")

    def __init__(self, totals: Totals, at: float) -> None:
        self.totals = totals
        self.at = at


class QuotaGuard:
    """Of one worker. Only billable answers use up a quota; what was rejected costs nothing.

    While the store is away, a key whose total was never read counts as having used nothing but what was counted here:
    turning away a partner who may have paid is worse than a quota overshot. The first flush that succeeds corrects it.
    """

    def __init__(
        self,
        counters: UsageCounters,
        store: UsageStore,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._counters = counters
        self._store = store
        self._clock = clock
        self._monotonic = monotonic
        self._known: dict[str, _Known] = {}
        self._asked: set[str] = set()
        self._priming: dict[str, asyncio.Task[None]] = {}
        self._day = -1
        self._bounds: dict[Period, tuple[int, int]] = {}

    def check(self, key_id: str, quota: Quota, now: float) -> QuotaState | None:
        """The key's state at `now`, in seconds since 1970. None: not known yet, `prime` it and check again."""
        known = self._known.get(key_id)
        if known is None:
            return None
        self._asked.add(key_id)
        first, end = self._period(quota.period, now)
        used = self._counters.billable(key_id, first, end)
        if first <= known.totals.day < end:
            used += known.totals.of_day if quota.period == "day" else known.totals.of_month
        return QuotaState(
            used=used,
            remaining=max(0, quota.requests - used),
            resets_in=max(1, math.ceil(end * DAY_SECONDS - now)),
            window=(end - first) * DAY_SECONDS,
            exhausted=used >= quota.requests,
            warning=used >= quota.requests * quota.warn_at,
        )

    async def prime(self, key_id: str) -> None:
        """Reads the key's total, once for all who wait for it; never fails, and ends within the store's budget."""
        task = self._priming.get(key_id)
        if task is None:
            task = self._priming[key_id] = asyncio.create_task(self._read(key_id), name="read a quota")
            task.add_done_callback(lambda _: self._priming.pop(key_id, None))
        await asyncio.shield(task)  # whoever goes away must not cancel it for the others

    def learn(self, key_id: str, totals: Totals) -> None:
        """What a flush brought; of interest only for keys that have a quota, which are those that were primed."""
        if key_id in self._known:
            self._known[key_id] = _Known(totals, self._monotonic())

    def stale(self) -> list[str]:
        """Keys that were checked since the last call, and whose total is older than REFRESH_SECONDS."""
        asked, self._asked = self._asked, set()
        oldest = self._monotonic() - REFRESH_SECONDS
        return [key_id for key_id in asked if key_id in self._known and self._known[key_id].at < oldest]

    async def _read(self, key_id: str) -> None:
        today = int(self._clock() // DAY_SECONDS)
        try:
            known = _Known(await self._store.totals(key_id, today), self._monotonic())
        except StoreUnavailable as error:
            log.debug("quota of %s is taken as unused: %s", key_id, error)
            known = _Known(Totals(today, 0, 0), -math.inf)
        while len(self._known) >= _MOST_KNOWN:  # whoever comes back is primed again
            del self._known[next(iter(self._known))]
        self._known[key_id] = known

    def _period(self, period: Period, now: float) -> tuple[int, int]:
        """The first day of the period that `now` is in, and the first after it."""
        day = int(now // DAY_SECONDS)
        if day != self._day:
            moment = datetime.fromtimestamp(now, UTC)
            for each in _PERIODS:
                first, end = period_of(each, moment)
                self._bounds[each] = (int(first.timestamp()) // DAY_SECONDS, int(end.timestamp()) // DAY_SECONDS)
            self._day = day
        return self._bounds[period]
