"""Brings what a worker counted into the key store, every half second and when it stops.

Killed (SIGKILL), a worker loses what it counted since the last flush, at most a second's worth. While the store is away
counts wait in memory; what cannot be stored before a worker must stop goes to the spool, which any worker empties.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence

from service.quota.names import DAY_SECONDS
from service.quota.quotas import QuotaGuard
from service.quota.spool import Spool, Spooled
from service.quota.usage import NO_BATCH, Batch, UsageCounters
from service.quota.usage_store import MOST_AT_ONCE, Refused, Totals, UsageStore
from service.redis.client import StoreUnavailable

log = logging.getLogger("forecast.usage")

FLUSH_SECONDS = 0.5
SPOOL_SECONDS = 30.0
STOP_SECONDS = 2.0
_RETRY_SECONDS = 0.1

Pair = tuple[str, Batch]


class UsageFlusher:
    """Of one worker. The one to call `UsageCounters.to_send`: a batch must never be under way twice."""

    def __init__(
        self,
        counters: UsageCounters,
        store: UsageStore,
        spool: Spool,
        quotas: QuotaGuard,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._counters = counters
        self._store = store
        self._spool = spool
        self._quotas = quotas
        self._clock = clock
        self._refused: dict[str, str] = {}
        self._spool_problem: str | None = None
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def problem(self) -> str | None:
        """What keeps usage from being stored though the store answers; None while nothing does."""
        for key_id, reason in self._refused.items():
            return f"usage of {len(self._refused)} keys cannot be stored and waits; of {key_id}: {reason}"
        return self._spool_problem

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="store usage")

    async def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Stores everything, trying for so many seconds; spools the rest. Call when the last request has ended."""
        self._stopping.set()
        if self._task is not None:
            await self._task
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while self._counters.waiting() and loop.time() < deadline:
            if not await self.flush():
                await asyncio.sleep(_RETRY_SECONDS)
            elif self._counters.waiting() <= self._refused.keys():
                break
        self._spool_rest()

    async def flush(self) -> bool:
        """One try for everything that waits; whether the store could be asked."""
        pairs = self._counters.to_send()
        under_way = {key_id for key_id, _ in pairs}
        pairs += [(key_id, NO_BATCH) for key_id in self._quotas.stale() if key_id not in under_way]
        refused_before = set(self._refused)
        try:
            async for (key_id, batch), reply in self._added(self._counters.worker_id, pairs):
                if isinstance(reply, Refused):
                    if batch.number:
                        self._refused[key_id] = reply.reason
                    continue
                self._refused.pop(key_id, None)
                # in one step, so that nothing is missing from a quota or counts twice
                self._counters.confirm(key_id, batch.number)
                self._quotas.learn(key_id, reply)
        except StoreUnavailable as error:
            log.debug("usage waits: %s", error)
            return False
        finally:
            if self._refused.keys() - refused_before:
                log.error("%s", self.problem)
        return True

    async def take_over(self) -> None:
        """Stores what workers before this one had to leave in the spool."""
        problem = None
        try:
            for path, spooled in await asyncio.to_thread(lambda: list(self._spool.waiting())):
                if self._stopping.is_set():
                    return  # our own counts come first
                refused = await self._store_spooled(spooled)
                if refused is None:
                    path.unlink(missing_ok=True)
                    log.info("usage of %d keys was taken over from %s", len(spooled.keys), path)
                else:
                    problem = f"usage in {path} cannot be stored: {refused}"
        except StoreUnavailable as error:
            log.debug("spooled usage waits: %s", error)
            return
        except OSError as error:
            problem = f"the usage spool cannot be emptied: {error.strerror}"
        if problem is not None and problem != self._spool_problem:
            log.error("%s", problem)
        self._spool_problem = problem

    async def _store_spooled(self, spooled: Spooled) -> str | None:
        """The reason why something was refused, None if everything is stored."""
        reason = None
        left = {key_id: list(batches) for key_id, batches in spooled.keys.items() if batches}
        while left:
            # a key's second batch only when its first is in: in the other order the first would pass for a repetition
            async for (key_id, _), reply in self._added(spooled.worker_id, [(key, left[key][0]) for key in left]):
                del left[key_id][0]
                if isinstance(reply, Refused):
                    reason = reply.reason
                if isinstance(reply, Refused) or not left[key_id]:
                    del left[key_id]
        return reason

    async def _added(self, worker_id: str, pairs: Sequence[Pair]) -> AsyncIterator[tuple[Pair, Totals | Refused]]:
        today = int(self._clock() // DAY_SECONDS)
        for start in range(0, len(pairs), MOST_AT_ONCE):
            some = pairs[start : start + MOST_AT_ONCE]
            replies = await self._store.add(worker_id, some, today)
            for pair, reply in zip(some, replies, strict=True):
                yield pair, reply

    def _spool_rest(self) -> None:
        rest = self._counters.surrender()
        if not rest:
            return
        try:
            path = self._spool.write(self._counters.worker_id, rest)
        except OSError as error:
            counted = sum(n for batches in rest.values() for batch in batches for *_, n in batch.cells)
            log.error("%d counts of %d keys are lost: no spool can be written: %s", counted, len(rest), error.strerror)
            return
        log.warning("usage of %d keys could not be stored in time: the next worker takes it from %s", len(rest), path)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        look_at = loop.time()
        while not self._stopping.is_set():
            began = loop.time()
            try:
                reached = await self.flush()
                if reached and loop.time() >= look_at:
                    look_at = loop.time() + SPOOL_SECONDS
                    await self.take_over()
            except Exception:  # a defect of ours, and no reason to store nothing any more
                log.exception("storing usage failed")
            await self._pause(began + FLUSH_SECONDS - loop.time())

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._stopping.wait(), max(0.0, seconds))
        except TimeoutError:
            return
