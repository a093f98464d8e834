"""Stores what a worker counted in the key store, every half second and when the worker stops (Decision 18).

While the store rejects writes, counts wait in memory. After a quarter of a second they are also in the spool, which is
rewritten every half second. So a killed worker loses at most about a second of counts, with or without the store;
another worker stores its spool (orphaned_usage.py).
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any, TypeVar

from service.base.tasks import keep_running
from service.quota.batch import NO_BATCH, UsageBatch
from service.quota.names import DAY_SECONDS
from service.quota.orphaned_usage import OrphanedUsage
from service.quota.quotas import QuotaGuard
from service.quota.spool import Spool
from service.quota.usage import UsageCounters
from service.quota.usage_store import Gap, Refused, UsageStore
from service.redis.errors import StoreUnavailable
from warehouse.files.file_access import FileAccess
from warehouse.schema.errors import FilesHang

log = logging.getLogger("forecast.usage")

T = TypeVar("T")

_WRITING = "writing the usage spool"
FLUSH_SECONDS = 0.5
STOP_SECONDS = 2.0
# A flush that takes this long may be about to fail.
SPOOL_AFTER_SECONDS = 0.25
_RETRY_SECONDS = 0.1
# Interval between checks of keys without recently stored batches.
_CHECK_SECONDS = 5.0
# A longer write is left to its thread, and usage waits in memory.
_FILE_SECONDS = 1.0
# Timeout of the last one, which saves the rest of the counts.
_LAST_FILE_SECONDS = 2.0


class UsageFlusher:
    """Stores and spools the counts of one worker. Started before its first request, stopped after its last one."""

    def __init__(
        self,
        counters: UsageCounters,
        store: UsageStore,
        spool: Spool,
        quotas: QuotaGuard,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.orphaned = OrphanedUsage(store, spool, clock)
        self._counters = counters
        self._store = store
        self._spool = spool
        self._quotas = quotas
        self._clock = clock
        self._refused: dict[str, str] = {}
        self._doubtful = False  # the store may have lost what it confirmed
        self._checked_at = 0.0
        self._unstored_since: float | None = None
        self._spooled: dict[str, tuple[UsageBatch, ...]] = {}
        self._cannot_spool = False
        self._files = FileAccess()
        self._stopping = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def problem(self) -> str | None:
        """Why usage is not stored although the store replies; None if it is."""
        for key_id, reason in self._refused.items():
            return f"usage of {len(self._refused)} keys cannot be stored and waits; of {key_id}: {reason}"
        hang = self._files.hang
        return str(hang) if hang is not None else self.orphaned.problem

    def start(self) -> None:
        self.orphaned.start()
        self._tasks = [
            keep_running("store usage", self._flush_in_time, stopping=self._stopping),
            keep_running("spool usage", self._spool_in_time, stopping=self._stopping),
        ]

    async def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Tries for `seconds` to store everything, then spools the rest. Call when the last request has ended."""
        self._stopping.set()
        await self.orphaned.stop()
        await asyncio.gather(*self._tasks)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        self._doubtful = True  # the last chance to check
        while (self._counters.waiting() or self._doubtful) and loop.time() < deadline:
            if not await self.flush():
                await asyncio.sleep(_RETRY_SECONDS)
            elif self._counters.waiting() <= self._refused.keys():
                break
        await self._spool_rest()

    async def flush(self) -> bool:
        """Tries once to store all waiting counts; returns whether the store replied."""
        if self._unstored_since is None:
            self._unstored_since = asyncio.get_running_loop().time()
        refused_before = set(self._refused)
        try:
            pairs = self._counters.to_send()
            pairs += [(key_id, NO_BATCH) for key_id in self._to_check() if not self._counters.was_sent(key_id)]
            while pairs:
                pairs = await self._send(pairs)
        except StoreUnavailable as error:
            log.debug("usage waits: %s", error)
            self._doubtful = True
            return False
        finally:
            if self._refused.keys() - refused_before:
                log.error("%s", self.problem)
        self._doubtful = False
        self._unstored_since = None
        return True

    async def _send(self, pairs: list[tuple[str, UsageBatch]]) -> list[tuple[str, UsageBatch]]:
        """Sends batches; returns the next ones of keys whose batches the store lost. Raises StoreUnavailable."""
        call = self._quotas.number_call()
        today = int(self._clock() // DAY_SECONDS)
        counters, lost = self._counters, False
        again: list[tuple[str, UsageBatch]] = []
        calls = self._store.add_all(counters.worker_id, pairs, today, counters.kept, self._quotas.claim)
        async for (key_id, batch), reply in calls:
            if isinstance(reply, Gap):
                is_news = self._quotas.store_lacks(key_id, reply, call)
                following = counters.to_send_of(key_id)
                if is_news or following is not batch:  # a concurrent read of a quota may have noticed it first
                    again.append((key_id, following))
                    lost = True
                    continue
                reply = Refused("it lacks a batch that was never stored")
            if isinstance(reply, Refused):
                self._refused[key_id] = reply.reason
                continue
            self._refused.pop(key_id, None)
            self._quotas.stored(key_id, batch, reply, call)
            if batch is NO_BATCH:
                counters.kept.proven(key_id)
            elif counters.was_sent(key_id):
                again.append((key_id, counters.to_send_of(key_id)))
        if lost and not self._doubtful:  # perhaps also batches of other keys
            self._doubtful = True
            known = {key_id for key_id, _ in (*pairs, *again)}
            again += [(key_id, NO_BATCH) for key_id in counters.kept.held() if key_id not in known]
        return again

    def _to_check(self) -> list[str]:
        """Returns keys that may have nothing to send, but whose stored batches need a check."""
        if self._doubtful:
            return self._counters.kept.held()
        now = asyncio.get_running_loop().time()
        if now - self._checked_at < _CHECK_SECONDS:
            return []
        self._checked_at = now
        return self._counters.kept.to_check()

    async def spool(self) -> None:
        """Writes counts that have waited long to disk, and removes the file when all of them are stored."""
        if self._files.busy:
            return  # a write is under way: its batches must keep their numbers
        since = self._unstored_since
        if since is not None and asyncio.get_running_loop().time() - since >= SPOOL_AFTER_SECONDS:
            await self._write(None)
        elif self._refused:
            await self._write(self._refused)
        elif self._spooled and not self._counters.has_spooled():
            try:
                await self._apart(self._spool.clear, self._counters.worker_id)
                self._spooled = {}
            except (OSError, FilesHang) as error:
                log.debug("the spool is left: %s", error)  # harmless: the store has every number in it

    async def _write(self, only: Collection[str] | None) -> None:
        batches = self._counters.to_spool(only)
        try:
            if batches != self._spooled:
                await self._apart(self._spool.write, self._counters.worker_id, batches)
            self._spooled, self._cannot_spool = batches, False
        except (OSError, FilesHang) as error:
            if not self._cannot_spool:
                log.error("usage waits only in memory: the spool cannot be written: %s", error)
            self._cannot_spool = True
        finally:
            self._counters.spool_written()

    async def _spool_rest(self) -> None:
        waits, keys = self._counters.waits, len(self._counters.waiting())
        rest = self._counters.surrender(kept=self._doubtful)
        try:
            if rest:
                path = await self._files.run(
                    _WRITING, self._spool.write, self._counters.worker_id, rest, wait=_LAST_FILE_SECONDS
                )
                log.warning("usage of %d keys could not be stored in time: another worker will store it from %s",
                            len(rest), path)  # fmt: skip
            elif self._spooled:
                await self._apart(self._spool.clear, self._counters.worker_id)
        except (OSError, FilesHang) as error:
            log.error("%d counts of %d keys are lost: the spool cannot be written: %s", waits, keys, error)
        finally:
            with suppress(FilesHang):  # its lock goes with the process
                await self._apart(self._spool.leave, self._counters.worker_id)

    async def _apart(self, call: Callable[..., T], *arguments: Any) -> T:
        return await self._files.run(_WRITING, call, *arguments, wait=_FILE_SECONDS)

    async def _flush_in_time(self) -> float:
        began = time.monotonic()
        await self.flush()
        return began + FLUSH_SECONDS - time.monotonic()

    async def _spool_in_time(self) -> float:
        began = time.monotonic()
        await self.spool()
        pause = SPOOL_AFTER_SECONDS if self._unstored_since is None else 2 * SPOOL_AFTER_SECONDS
        return began + pause - time.monotonic()
