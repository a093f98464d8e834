"""How much of its quota a key has used, known in the worker without a call to the store for most requests.

A worker has the total of all workers, as last read from the store, and its own counts since then. The total is trusted
for TRUST_SECONDS, and for as many requests as a quarter of this worker's share of what was left. Then the worker stores
its counts of the key and reads the total again, in one round trip for all waiting requests. Flushes do the same for
every key in use. A total that still grows old, as in a loop with thousands of ready connections, where a flush takes a
second, is read again while requests use it for TRUST_SECONDS more. So requests of a hot key seldom wait. When little is
left, each request calls the store.

The bound: a quota is exceeded by at most what all workers answer within TRUST_SECONDS and the time of a call, and by no
more than a quarter of what was left at the beginning of that time, or one request for each worker if that is more; and
by requests that are under way. An exhausted quota stays exhausted until the period ends or the terms change. No request
waits longer than WAIT_SECONDS for the store, and a key waits again only after TRUST_SECONDS.

While the store is unreachable, each worker spends at most its share of what was left when it last read the total
(quota_state.py): all of it, divided by the number of workers of all instances; a share of the whole quota if it never
read it. Then the key gets a 503, because it is unknown whether its quota is exhausted. A worker gets another share only
SETTLED_SECONDS after a call or its connection last failed, when all others have stored what they spent. So an outage
lets a quota be exceeded by requests under way, if all workers read the total in the TRUST_SECONDS before. One that did
not may add what the others stored since, divided by the number of workers.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from service.base.terms import Quota, QuotaPeriod, period_of
from service.base.timeouts import within
from service.quota.batch import NO_BATCH, UsageBatch
from service.quota.names import DAY_SECONDS
from service.quota.quota_state import TRUST_SECONDS, UNBOUNDED, QuotaReading, QuotaState
from service.quota.usage import UsageCounters
from service.quota.usage_store import Gap, Refused, Reply, Totals, UsageStore
from service.redis.errors import StoreUnavailable

log = logging.getLogger("forecast.quota")

WAIT_SECONDS = 0.25
# When little is left, the other workers see admitted requests after this long; most answers take less.
SOON_SECONDS = 0.02
# All workers together may admit one in this many of the remaining requests before their next call.
_PART = 4
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
        self._known: dict[str, QuotaReading] = {}
        self._reads: dict[str, asyncio.Task[None]] = {}  # of totals, under way
        self._overdue: set[str] = set()  # keys whose read took too long for a request that waited
        self._soon: set[str] = set()
        self._asked = 0
        self._overdue_at = -math.inf  # when a call took too long last, in monotonic seconds
        self._day = -1
        self._bounds: dict[QuotaPeriod, tuple[int, int]] = {}

    def known(self, key_id: str) -> QuotaReading:
        """Returns what `check` used; `admit` may spend its `spendable` requests (quota_state.py)."""
        return self._known[key_id]

    def check(self, key_id: str, quota: Quota, now: float, number: int = 1) -> QuotaState | None:
        """Returns the key's state at `now`, in seconds since 1970, if `number` or more requests remain.

        None if the total is too old or used up: `standing` calls the store. Needs a running loop.
        """
        known = self._known.get(key_id)
        if known is None:
            return None
        if quota is not known.quota or not known.begins <= now < known.ends:
            self._adopt(key_id, known, quota, now)
        used = self._used(key_id, known)
        due = known.at + DUE_SECONDS
        until = known.until + TRUST_SECONDS if key_id in self._reads else known.until
        if used + number <= quota.requests:
            if not known.at <= now < until:
                return None
            if known.left < number:
                if not known.cut_off or used + number <= known.most:
                    return None
                return msgspec.structs.replace(known.standing(quota, used, now, due), withheld=True)
            if not known.spend(number):
                self._store_soon(key_id)
            if now >= due:
                self._start(key_id)
        return known.standing(quota, used, now, due if now < due else until)

    def used_share(self, key_id: str) -> float | None:
        """Returns the used share of the key's quota, as last known; None if it has none, or its period is over."""
        known = self._known.get(key_id)
        if known is None or known.quota is None or not known.begins <= self._clock() < known.ends:
            return None
        return self._used(key_id, known) / known.quota.requests

    async def standing(self, key_id: str, quota: Quota, number: int = 1) -> QuotaState:
        """Returns the result of `check`, after a call to the store if needed. Never fails; ends within WAIT_SECONDS."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + WAIT_SECONDS
        while (state := self.check(key_id, quota, self._clock(), number)) is None:
            await self.prime(key_id, deadline - loop.time())
            known = self._remembered(key_id)
            if number > 1 and not known.cut_off:  # they may exceed this worker's part, but not what is left
                known.limit(max(number, known.left))
            if loop.time() >= deadline:
                # other waiting requests were first, repeatedly
                known.good(self._clock(), max(number, known.left))
        return state

    async def prime(self, key_id: str, seconds: float = WAIT_SECONDS) -> None:
        """Reads the key's total, once for all requests that wait for it. If that takes longer, the known total stays in
        use.

        A `check` right after this succeeds, unless other requests were first and too little is left for all.
        """
        try:
            await within(max(0.0, seconds), asyncio.wait([self._start(key_id)]))
        except TimeoutError:
            if key_id in self._reads and key_id not in self._overdue:
                self._overdue.add(key_id)
                self._extend(key_id)

    def number_call(self) -> int:
        """Returns the number of the next call to the store, for `stored`."""
        self._asked += 1
        return self._asked

    def stored(self, key_id: str, batch: UsageBatch, totals: Totals, asked: int) -> None:
        """Handles a stored batch and the totals in the reply. One step, so that nothing is missing or counted twice.

        Only keys that were primed, which are those with a quota, are kept.
        """
        known = self._known.get(key_id)
        spare = 0 if known is None else max(0, known.most - self._used(key_id, known))
        is_news = self._counters.confirm(key_id, batch.number)
        # the reply to the later call includes that to the earlier one
        if known is None or asked < known.asked:
            return
        known.learn(totals, asked)
        if known.quota is not None and is_news:
            self._log_level(key_id, known, known.quota, batch)
        known.good(self._clock(), self._share(key_id, known, spare))

    def store_lacks(self, key_id: str, gap: Gap, asked: int) -> bool:
        """Queues confirmed batches that the store lost. Returns whether there were any.

        One step, so that nothing is missing or counted twice.
        """
        older_lost = self._counters.take_back(key_id, gap.last)
        if older_lost is None:
            return False
        known = self._known.get(key_id)
        if known is not None and asked >= known.asked:
            known.learn(gap.totals, asked)
        log.warning("the key store lost confirmed usage of %s: it is sent again", key_id)
        if older_lost:
            log.error("usage of %s is lost: the key store lost more than the batches that are kept", key_id)
        return True

    def _used(self, key_id: str, known: QuotaReading) -> int:
        return known.base + self._counters.billable(key_id, known.first, known.end)

    def _share(self, key_id: str, known: QuotaReading, spare: int = UNBOUNDED) -> int:
        """Returns how many requests this worker may admit before its next call. `spare`: the rest of its last share."""
        lost_at = max(self._overdue_at, self._store.lost_at)  # the total may lack what other workers spent
        known.cut_off = time.monotonic() < lost_at + SETTLED_SECONDS
        return known.share(self._used(key_id, known), spare, self._workers(), _PART, self._clock())

    def _adopt(self, key_id: str, known: QuotaReading, quota: Quota, now: float) -> None:
        """Applies these terms, and this period, from now on."""
        is_news = known.adopt(quota, *self._period(quota.period, now))
        if is_news and (known.cut_off or known.left < UNBOUNDED // 2):
            known.limit(self._share(key_id, known))

    def _log_level(self, key_id: str, known: QuotaReading, quota: Quota, batch: UsageBatch) -> None:
        """Logs the level that this batch reached. Only one batch of all workers reaches it."""
        added = batch.billable(known.first, known.end)
        for level, text in ((quota.requests, "used up its quota"), (quota.warn_from, "nearly used up")):
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

    def _start(self, key_id: str) -> asyncio.Task[None]:
        """Reads the totals, and stores waiting counts so that the other workers see them. The flusher may store the
        same batch, with the same number, at the same moment.
        """
        read = self._reads.get(key_id)
        if read is None:
            read = self._reads[key_id] = asyncio.create_task(self._read(key_id), name="read a quota")
        return read

    async def _read(self, key_id: str) -> None:
        counters, asked = self._counters, self.number_call()
        batch = counters.to_send_of(key_id)
        reply: Reply | StoreUnavailable
        try:
            [reply] = await self._store.add(counters.worker_id, [(key_id, batch)], self._today(), counters.kept)
            if isinstance(reply, Refused):  # a store that rejects writes may still reply totals
                batch = NO_BATCH
                [reply] = await self._store.add("", [(key_id, NO_BATCH)], self._today())
        except StoreUnavailable as error:
            reply = error
        try:
            self._take(key_id, batch, asked, reply)
        except Exception:  # no request must wait because of a defect
            log.exception("reading the quota of %s failed", key_id)
            self._extend(key_id)
        finally:
            del self._reads[key_id]
            self._overdue.discard(key_id)

    def _take(self, key_id: str, batch: UsageBatch, asked: int, reply: Reply | StoreUnavailable) -> None:
        self._remembered(key_id)
        if isinstance(reply, Gap):
            self.store_lacks(key_id, reply, asked)
            batch, reply = NO_BATCH, reply.totals
        if isinstance(reply, Totals):
            self.stored(key_id, batch, reply, asked)
        else:
            log.debug("quota of %s is assumed unchanged: %s", key_id, reply)
            self._extend(key_id, cut_off=isinstance(reply, StoreUnavailable))

    def _today(self) -> int:
        return int(self._clock() // DAY_SECONDS)

    def _extend(self, key_id: str, *, cut_off: bool = True) -> None:
        """Trusts the known total a while longer; if the store is unreachable, within this worker's share."""
        known = self._remembered(key_id)
        if cut_off:
            self._overdue_at = time.monotonic()
        known.cut_off = cut_off
        known.good(self._clock(), max(0, known.most - self._used(key_id, known)) if cut_off else UNBOUNDED)

    def _remembered(self, key_id: str) -> QuotaReading:
        known = self._known.get(key_id)
        if known is None:
            while len(self._known) >= _MOST_KNOWN:  # an evicted key is primed again when used
                del self._known[next(iter(self._known))]
            known = self._known[key_id] = QuotaReading(Totals(0, 0, 0))
        return known

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
