"""How much of its quota a key has used, and how many requests this worker may admit without a call to the store.

The store has the total of all workers, and what each worker holds: requests that it may have admitted and not stored
yet (usage.lua). Both together are at most the quota, so it is never exceeded. Each call that stores counts of a key or
reads its total says what the worker carries, and gets a grant of what is left (`QuotaReading.make_claim`). The worker
uses its grants for TRUST_SECONDS after the call. Flushes renew them for every key in use, so requests of a hot key
seldom wait. A total that still grows old, as in a loop with thousands of ready connections, where a flush takes a
second, is read again while requests use it for TRUST_SECONDS more. When little is left, each request calls the store.

If other workers hold the rest, it is unknown whether they will use it. The request tries again for WAIT_SECONDS, then
gets a 503. An exhausted quota stays exhausted until the period ends or the terms change.

A hold ends HOLD_SECONDS after the last call. So a quota may be exceeded by answers that take more than a second, if
their worker stores nothing of the key meanwhile; by the holds that the store loses in a failover; and by requests that
a worker admits because the store did not reply within WAIT_SECONDS.

While the store is unreachable, each worker spends at most its share of what was left when it last read the total
(`QuotaReading.share`): all of it, divided by the number of workers of all instances; a share of the whole quota if it
never read it. Then the key gets a 503, because it is unknown whether its quota is exhausted. A worker gets another
share only SETTLED_SECONDS after a call or its connection last failed, when all others have stored what they spent. So
an outage lets a quota be exceeded by requests under way, if all workers read the total in the TRUST_SECONDS before. One
that did not may add what the others stored since, divided by the number of workers. No request waits longer than
WAIT_SECONDS for the store, and a key waits again only after TRUST_SECONDS.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable
from datetime import UTC, datetime

from service.base.terms import Quota, QuotaPeriod, period_of
from service.base.timeouts import within
from service.quota.batch import NO_BATCH, UsageBatch
from service.quota.names import DAY_SECONDS
from service.quota.quota_state import TRUST_SECONDS, QuotaReading, QuotaState
from service.quota.usage import UsageCounters
from service.quota.usage_store import Claim, Gap, Refused, Reply, Totals, UsageStore
from service.redis.errors import StoreUnavailable

log = logging.getLogger("forecast.quota")

WAIT_SECONDS = 0.25
# When little is left, the other workers see admitted requests after this long; most answers take less. A request that
# waits for them tries again as often.
SOON_SECONDS = 0.02
_LEAST_WAIT_SECONDS = 0.001  # the store does not reply sooner
# From this age on, a total is read again while requests use it. Usually, a flush has brought a newer one.
DUE_SECONDS = 0.8
# After an outage of the store, totals may lack for this long what other workers spent meanwhile. Each stores that
# within about a second: its probe, and its next flush.
SETTLED_SECONDS = 3.0
_MOST_KNOWN = 100_000  # keys
_PERIODS: tuple[QuotaPeriod, ...] = ("day", "month")


class QuotaGuard:
    """The quotas as one of `workers` (at least 1) keeps them, for as long as it lives. Only billable answers count.

    While the store is unreachable, a key whose total was never read counts only the usage in this worker: rejecting a
    partner who may have paid is worse than overshooting a quota. The first flush that succeeds corrects it.
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
        self._readings: dict[str, QuotaReading] = {}
        self._reads: dict[str, asyncio.Task[None]] = {}  # of totals, under way
        self._overdue: set[str] = set()  # keys whose read took too long for a request that waited
        self._soon: set[str] = set()
        self._calls = 0
        self._overdue_at = -math.inf  # when a call took too long last, in monotonic seconds
        self._day = -1
        self._bounds: dict[QuotaPeriod, tuple[int, int]] = {}

    def reading(self, key_id: str) -> QuotaReading:
        """Returns what `check` used; `admit` may spend its `spendable` requests (quota_state.py)."""
        return self._readings[key_id]

    def check(self, key_id: str, quota: Quota, now: float, number: int = 1) -> QuotaState | None:
        """Returns the key's state at `now`, in seconds since 1970, if `number` or more requests remain.

        None if the total is too old, or more must be granted: `standing` calls the store. Needs a running loop.
        """
        reading = self._remembered(key_id)
        if quota is not reading.quota or not reading.begins <= now < reading.ends:
            reading.adopt(quota, *self._period(quota.period, now), self._workers())
        used = self._used(key_id, reading)
        due = reading.at + DUE_SECONDS
        until = reading.until + TRUST_SECONDS if key_id in self._reads else reading.until
        if used + number <= quota.requests:
            if not reading.at <= now < until:
                return None
            if reading.left < number:
                if not reading.cut_off or used + number <= reading.most:
                    return None
                return reading.withheld(quota, used, now)
            if not reading.spend(number):
                self._store_soon(key_id)
            if now >= due:
                self._start(key_id)
        return reading.standing(quota, used, now, due if now < due else until)

    def used_share(self, key_id: str) -> float | None:
        """Returns the used share of the key's quota, as last known; None if it has none, or its period is over."""
        reading = self._readings.get(key_id)
        if reading is None or reading.quota is None or not reading.begins <= self._clock() < reading.ends:
            return None
        return self._used(key_id, reading) / reading.quota.requests

    async def standing(self, key_id: str, quota: Quota, number: int = 1) -> QuotaState:
        """Returns the result of `check`, after calls to the store if needed. Never fails; ends within WAIT_SECONDS.

        It is withheld if other workers hold the rest until then.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + WAIT_SECONDS
        reading, again = self._remembered(key_id), False
        reading.waiting += number
        try:
            while (state := self.check(key_id, quota, self._clock(), number)) is None:
                if again and reading.is_dry:
                    await asyncio.sleep(min(SOON_SECONDS, deadline - loop.time()))
                if (seconds := deadline - loop.time()) < _LEAST_WAIT_SECONDS:
                    return reading.withheld(quota, self._used(key_id, reading), self._clock())
                await self.prime(key_id, seconds, again=again)
                again = True
        finally:
            reading.waiting -= number
        return state

    async def prime(self, key_id: str, seconds: float = WAIT_SECONDS, *, again: bool = False) -> None:
        """Reads the key's total, once for all requests that wait for it. If that takes longer, the known total stays in
        use; unless the request waited before, so that this read may have begun a moment ago.
        """
        try:
            await within(max(0.0, seconds), asyncio.wait([self._start(key_id)]))
        except TimeoutError:
            if key_id in self._reads and key_id not in self._overdue and not again:
                self._overdue.add(key_id)
                self._extend(key_id)

    def begin(self, key_id: str, request: int, number: int) -> None:
        """Notes that a request, which counts as `number`, was admitted and awaits its answer. `request` is its id()."""
        reading = self._readings.get(key_id)
        if reading is not None:
            reading.under_way[request] = (self._clock(), number)

    def end(self, key_id: str, request: int) -> None:
        """Notes that it was counted, or will not be. Without this, it is under way for HOLD_SECONDS."""
        reading = self._readings.get(key_id)
        if reading is not None:
            reading.under_way.pop(request, None)

    def claim(self, key_id: str, batch: UsageBatch, today: int) -> Claim | None:
        """Returns what a call says of the key's quota (`Claims`). Its reply must come to `stored`, if there is one."""
        reading = self._readings.get(key_id)
        if reading is None or not reading.first <= today < reading.end:
            return None
        used, first, end = self._used(key_id, reading), reading.first, reading.end
        unsent = self._counters.billable(key_id, first, end) - batch.billable(first, end)
        return reading.make_claim(used, unsent, self._workers(), self._clock())

    def number_call(self) -> int:
        """Returns the number of the next call to the store, for `stored`."""
        self._calls += 1
        return self._calls

    def stored(self, key_id: str, batch: UsageBatch, totals: Totals, call: int) -> None:
        """Handles a stored batch and the totals in the reply. One step, so that nothing is missing or counted twice.

        Only keys that were primed, which are those with a quota, are kept.
        """
        reading = self._readings.get(key_id)
        is_news = self._counters.confirm(key_id, batch.number)
        # the reply to the later call includes that to the earlier one
        if reading is None or call < reading.call:
            return
        reading.learn(totals, call)
        if reading.quota is not None and is_news:
            self._log_level(key_id, reading, reading.quota, batch)
        # until all have stored what they spent in an outage, the total may lack it
        reading.cut_off = time.monotonic() < max(self._overdue_at, self._store.lost_at) + SETTLED_SECONDS
        if not reading.cut_off:
            reading.share(self._workers(), self._clock())
        reading.take_grant(totals)

    def store_lacks(self, key_id: str, gap: Gap, call: int) -> bool:
        """Queues confirmed batches that the store lost. Returns whether there were any.

        One step, so that nothing is missing or counted twice.
        """
        older_lost = self._counters.take_back(key_id, gap.last)
        if older_lost is None:
            return False
        reading = self._readings.get(key_id)
        if reading is not None and call >= reading.call:
            reading.learn(gap.totals, call)
        log.warning("the key store lost confirmed usage of %s: it is sent again", key_id)
        if older_lost:
            log.error("usage of %s is lost: the key store lost more than the batches that are kept", key_id)
        return True

    def _used(self, key_id: str, reading: QuotaReading) -> int:
        return reading.base + self._counters.billable(key_id, reading.first, reading.end)

    def _log_level(self, key_id: str, reading: QuotaReading, quota: Quota, batch: UsageBatch) -> None:
        """Logs the level that this batch reached. Only one batch of all workers reaches it."""
        added = batch.billable(reading.first, reading.end)
        for level, text in ((quota.requests, "used up its quota"), (quota.warn_from, "nearly used up")):
            if reading.base - added < level <= reading.base:
                log.warning(
                    "key %s: %s: %d of %s", key_id, text, reading.base, quota,
                    extra={"key_id": key_id, "used": reading.base},
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

    def _start(self, key_id: str) -> asyncio.Task[None]:
        """Reads the totals, and stores waiting counts so that the other workers see them. The flusher may store the
        same batch, with the same number, at the same moment.
        """
        read = self._reads.get(key_id)
        if read is None:
            read = self._reads[key_id] = asyncio.create_task(self._read(key_id), name="read a quota")
        return read

    async def _read(self, key_id: str) -> None:
        counters, call = self._counters, self.number_call()
        batch, is_refused = counters.to_send_of(key_id), False
        reply: Reply | StoreUnavailable
        try:
            [reply] = await self._store.add(
                counters.worker_id, [(key_id, batch)], self._today(), counters.kept, self.claim
            )
            if isinstance(reply, Refused):  # a store that rejects writes may still reply totals
                batch, is_refused = NO_BATCH, True
                [reply] = await self._store.add("", [(key_id, NO_BATCH)], self._today())
        except StoreUnavailable as error:
            reply = error
        try:
            self._take(key_id, batch, call, reply)
            if is_refused:  # the store holds nothing
                self._extend(key_id, is_lost=False)
        except Exception:  # no request must wait because of a defect
            log.exception("reading the quota of %s failed", key_id)
            self._extend(key_id)
        finally:
            del self._reads[key_id]
            self._overdue.discard(key_id)

    def _take(self, key_id: str, batch: UsageBatch, call: int, reply: Reply | StoreUnavailable) -> None:
        self._remembered(key_id)
        if isinstance(reply, Gap):
            self.store_lacks(key_id, reply, call)
            batch, reply = NO_BATCH, reply.totals
        if isinstance(reply, Totals):
            self.stored(key_id, batch, reply, call)
        else:
            log.debug("quota of %s is assumed unchanged: %s", key_id, reply)
            self._extend(key_id, is_lost=isinstance(reply, StoreUnavailable))

    def _today(self) -> int:
        return int(self._clock() // DAY_SECONDS)

    def _extend(self, key_id: str, *, is_lost: bool = True) -> None:
        """Trusts the known total a while longer, within this worker's share. `is_lost`: the store is unreachable, so
        totals may lack what other workers spend meanwhile.
        """
        reading = self._remembered(key_id)
        if is_lost:
            self._overdue_at = time.monotonic()
        reading.cut_off = True
        reading.trust(self._clock(), max(0, reading.most - self._used(key_id, reading)))

    def _remembered(self, key_id: str) -> QuotaReading:
        reading = self._readings.get(key_id)
        if reading is None:
            while len(self._readings) >= _MOST_KNOWN:  # an evicted key is primed again when used
                del self._readings[next(iter(self._readings))]
            reading = self._readings[key_id] = QuotaReading()
        return reading

    def _period(self, period: QuotaPeriod, now: float) -> tuple[int, int]:
        """Returns the first day of the period that contains `now`, and the first day after it."""
        day = int(now // DAY_SECONDS)
        if day != self._day:
            moment = datetime.fromtimestamp(now, UTC)
            for each in _PERIODS:
                first, end = period_of(each, moment)
                self._bounds[each] = (int(first.timestamp()) // DAY_SECONDS, int(end.timestamp()) // DAY_SECONDS)
            self._day = day
        return self._bounds[period]
