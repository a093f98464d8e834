"""How much of its quota a key has used, known in the worker without asking anybody for most requests.

Known are the total of all workers, as the store had it, and what this worker counted since. The total is good for
TRUST_SECONDS, and for as many requests as are a quarter of this worker's share of what was left; then the worker stores
what it counted of the key and reads the total anew, in one round trip for all who wait. Flushes do the same for every
key that is in use, so that a hot key is seldom waited for. When little is left, each request asks.

The bound: a quota is exceeded by at most what all workers answer within TRUST_SECONDS and the time of a call, and by no
more than a quarter of what was left at the beginning of that time, or one request for each worker if that is more; and
by requests that are under way. What is exhausted stays so until the period ends or the terms change. While the store is
away, every worker goes on from what it last knew, with its own counts; nobody waits longer than WAIT_SECONDS for it,
and a key waits again only after TRUST_SECONDS.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime

from service.base.terms import Period, Quota, period_of
from service.quota.known import Known, QuotaState
from service.quota.names import DAY_SECONDS
from service.quota.usage import NO_BATCH, Batch, UsageCounters
from service.quota.usage_store import Refused, Totals, UsageStore
from service.redis.client import StoreUnavailable

log = logging.getLogger("forecast.quota")

WAIT_SECONDS = 0.25
# When little is left, what was admitted is told to the other workers after this long; most answers take less.
SOON_SECONDS = 0.02
# One in so many of what is left may be admitted by all workers together before they ask again.
_PART = 4
_UNBOUNDED = 1 << 60
_MOST_KNOWN = 100_000
_PERIODS: tuple[Period, ...] = ("day", "month")


class QuotaGuard:
    """Of one worker, one of `workers` (at least 1). Only billable answers use up a quota; what was rejected is free.

    While the store is away, a key whose total was never read counts as having used nothing but what was counted here:
    turning away a partner who may have paid is worse than a quota overshot. The first flush that succeeds corrects it.
    """

    def __init__(
        self,
        counters: UsageCounters,
        store: UsageStore,
        workers: Callable[[], int] = lambda: 1,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._counters = counters
        self._store = store
        self._workers = workers
        self._clock = clock
        self._known: dict[str, Known] = {}
        self._priming: dict[str, asyncio.Task[None]] = {}
        self._soon: set[str] = set()
        self._asked = 0
        self._day = -1
        self._bounds: dict[Period, tuple[int, int]] = {}

    def known(self, key_id: str) -> Known:
        """What `check` went by, of which `quick` may be spent directly (known.py)."""
        return self._known[key_id]

    def lets_pass(self, key_id: str) -> bool:
        """Whether there was something left of it, and nothing to warn of, when `check` was last asked."""
        known = self._known.get(key_id)
        return known is not None and known.state is not None and not (known.state.exhausted or known.state.warning)

    def check(self, key_id: str, quota: Quota, now: float) -> QuotaState | None:
        """The key's state at `now`, in seconds since 1970; if it is not exhausted, one request may go on.

        None: what is known is not good enough, `standing` asks. Needs a running loop.
        """
        known = self._known.get(key_id)
        if known is None:
            return None
        if quota is not known.quota or not known.begins <= now < known.ends:
            self._adopt(key_id, known, quota, now)
        used = known.base + self._counters.billable(key_id, known.first, known.end)
        if used < quota.requests:
            if known.left <= 0 or not known.at <= now < known.until:
                return None
            if not known.spend():
                self._store_soon(key_id)
        return known.standing(quota, used, now)

    async def standing(self, key_id: str, quota: Quota) -> QuotaState:
        """The same, having asked the store if need be; never fails, and ends within WAIT_SECONDS."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + WAIT_SECONDS
        while (state := self.check(key_id, quota, self._clock())) is None:
            await self.prime(key_id, deadline - loop.time())
            if loop.time() >= deadline:
                # others who waited were first, again and again: enough of it
                known = self._remembered(key_id)
                known.good(self._clock(), max(1, known.left))
        return state

    async def prime(self, key_id: str, seconds: float = WAIT_SECONDS) -> None:
        """Reads the key's total, once for all who wait for it; what is known goes on being used if that takes longer.

        A `check` right after it is answered, unless others who waited were first and too little is left for all.
        """
        task = self._start(key_id)
        await asyncio.wait({task}, timeout=max(0.0, seconds))  # the call goes on, also if its caller goes away
        if not task.done() and seconds >= WAIT_SECONDS:
            self._go_on(key_id)

    def asking(self) -> int:
        """Call before asking the store, for `stored`."""
        self._asked += 1
        return self._asked

    def stored(self, key_id: str, batch: Batch, totals: Totals, asked: int) -> None:
        """The store has the batch, and told the totals. In one step: nothing is missing from a quota or counts twice.

        Of interest only for keys that have a quota, which are those that were primed.
        """
        is_news = self._counters.confirm(key_id, batch.number)
        known = self._known.get(key_id)
        # of two answers, the one that was asked for later has all that the other has
        if known is None or asked < known.asked:
            return
        known.learn(totals, asked)
        if known.quota is not None and is_news:
            self._tell(key_id, known, known.quota, batch)
        known.good(self._clock(), self._share(key_id, known))

    async def settle(self) -> None:
        """Waits for the questions under way."""
        while self._priming:
            await asyncio.wait(list(self._priming.values()))

    def _share(self, key_id: str, known: Known) -> int:
        """How many requests this worker may let go on before it asks again, at least 1."""
        if known.quota is None:
            return 1
        used = known.base + self._counters.billable(key_id, known.first, known.end)
        return max(1, (known.quota.requests - used) // (_PART * self._workers()))

    def _adopt(self, key_id: str, known: Known, quota: Quota, now: float) -> None:
        """These terms, and this period, from now on."""
        is_news = known.adopt(quota, *self._period(quota.period, now))
        if is_news and known.left < _UNBOUNDED // 2:
            known.limit(self._share(key_id, known))

    def _tell(self, key_id: str, known: Known, quota: Quota, batch: Batch) -> None:
        """Logs what this batch brought about: of all workers' batches, one alone reaches a level."""
        added = batch.billable(known.first, known.end)
        for level, text in ((quota.requests, "used up its quota"), (quota.requests * quota.warn_at, "nearly used up")):
            if known.base - added < level <= known.base:
                log.warning(
                    "key %s: %s: %d of %s", key_id, text, known.base, quota,
                    extra={"key_id": key_id, "used": known.base},
                )  # fmt: skip
                return

    def _store_soon(self, key_id: str) -> None:
        if key_id not in self._soon:
            self._soon.add(key_id)
            asyncio.get_running_loop().call_later(SOON_SECONDS, self._store_now, key_id)

    def _store_now(self, key_id: str) -> None:
        self._soon.discard(key_id)
        if self._counters.is_waiting(key_id):
            self._start(key_id)

    def _start(self, key_id: str) -> "asyncio.Task[None]":
        task = self._priming.get(key_id)
        if task is None:
            task = self._priming[key_id] = asyncio.create_task(self._read(key_id), name="read a quota")
            task.add_done_callback(lambda _: self._priming.pop(key_id, None))
        return task

    async def _read(self, key_id: str) -> None:
        """Also stores what waits, so that the other workers know of it. The flusher may do so at the same moment: the
        same batch under the same number."""
        asked = self.asking()
        today = int(self._clock() // DAY_SECONDS)
        try:
            batch = self._counters.to_send_of(key_id)
            [reply] = await self._store.add(self._counters.worker_id, [(key_id, batch)], today)
            if isinstance(reply, Refused):  # a store that takes nothing may still tell what it has
                batch, reply = NO_BATCH, await self._store.totals(key_id, today)
            self._remembered(key_id)
            self.stored(key_id, batch, reply, asked)
        except StoreUnavailable as error:
            log.debug("quota of %s is taken as it was: %s", key_id, error)
            self._go_on(key_id)
        except Exception:  # a defect of ours, and no reason to keep anybody waiting
            log.exception("reading the quota of %s failed", key_id)
            self._go_on(key_id)

    def _go_on(self, key_id: str) -> None:
        """For a while, with what is known."""
        self._remembered(key_id).good(self._clock(), _UNBOUNDED)

    def _remembered(self, key_id: str) -> Known:
        known = self._known.get(key_id)
        if known is None:
            while len(self._known) >= _MOST_KNOWN:  # whoever comes back is primed again
                del self._known[next(iter(self._known))]
            known = self._known[key_id] = Known(Totals(0, 0, 0))
        return known

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
