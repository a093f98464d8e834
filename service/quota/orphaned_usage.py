"""Stores the spool of earlier workers, concurrently with the flushes, which must not wait for it."""

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from service.base.tasks import keep_running
from service.quota.confirmed_batches import ConfirmedBatches
from service.quota.names import DAY_SECONDS
from service.quota.spool import Spool, Spooled
from service.quota.usage_store import Gap, Refused, UsageStore
from service.redis.errors import StoreUnavailable
from warehouse.files.file_access import FileAccess
from warehouse.schema.errors import FilesHang

log = logging.getLogger("forecast.usage")

T = TypeVar("T")

LOOK_SECONDS = 30.0
_RETRY_SECONDS = 1.0
# A slower file is left for later; some reads may never return.
_FILE_SECONDS = 10.0
_FILE_THREADS = 3
# Time for the call under way when the worker stops.
_STOP_SECONDS = 1.0


class OrphanedUsage:
    """Part of one worker's UsageFlusher. `problem`: why usage cannot be stored although the store replies, or None."""

    def __init__(self, store: UsageStore, spool: Spool, clock: Callable[[], float] = time.time) -> None:
        self.problem: str | None = None
        self._store = store
        self._spool = spool
        self._clock = clock
        self._files = FileAccess(_FILE_THREADS)
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = keep_running("take over usage", self._check, stopping=self._stopping)

    async def stop(self) -> None:
        """Ends after the call under way, and leaves the rest to the next worker."""
        self._stopping.set()
        if self._task is None:
            return
        _, late = await asyncio.wait([self._task], timeout=_STOP_SECONDS)
        if late and self._files.busy:  # a call to the store, by contrast, is never cancelled
            self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def once(self) -> bool:
        """Tries once to store all waiting files. Returns False if there was usage and the store did not reply."""
        problem = None
        try:
            for path in await self._apart("listing the usage spool", self._spool.files):
                if self._stopping.is_set():
                    break
                try:
                    problem = await self._take(path) or problem
                except OSError as error:  # of one file; others can be read
                    problem = f"usage in {path} cannot be taken over: {error.strerror}"
        except StoreUnavailable as error:
            log.debug("spooled usage waits: %s", error)
            return False
        except FilesHang as error:
            problem = str(error)
        except OSError as error:
            problem = f"the usage spool cannot be emptied: {error.strerror}"
        if problem is not None and problem != self.problem:
            log.error("%s", problem)
        self.problem = problem
        return True

    async def _take(self, path: Path) -> str | None:
        """Stores one file; returns why a batch in it was refused, if one was."""
        claim = await self._apart(f"locking {path}", self._spool.claim, path)
        if claim is None:
            return None
        try:
            spooled = await self._apart(f"reading {path}", self._spool.read, path)
            if spooled is None:
                return None
            stored, refused = await self._store_spooled(spooled)
            if refused is not None:
                return f"usage in {path} cannot be stored: {refused}"
            if stored:
                await self._apart(f"removing {path}", self._spool.clear, path.stem)
                log.info("usage of %d keys was taken over from %s", len(spooled.keys), path)
        finally:
            await self._apart(f"unlocking {path}", claim.close)
        return None

    async def _apart(self, what: str, call: Callable[..., T], *arguments: Path | str) -> T:
        return await self._files.run(what, call, *arguments, wait=_FILE_SECONDS)

    async def _store_spooled(self, spooled: Spooled) -> tuple[bool, str | None]:
        """Returns whether it reached the end of the file, and why a batch was refused."""
        reason = None
        left = {key_id: list(batches) for key_id, batches in spooled.keys.items() if batches}
        stored = ConfirmedBatches()
        while left:
            # a key's second batch only after its first: in the other order, the first would count as a repetition
            firsts = [(key_id, batches[0]) for key_id, batches in left.items()]
            today = int(self._clock() // DAY_SECONDS)
            async for (key_id, batch), reply in self._store.add_all(spooled.worker_id, firsts, today, stored):
                if self._stopping.is_set():
                    return False, None  # our own counts come first
                if isinstance(reply, Gap):  # a failover meanwhile
                    left[key_id][:0] = stored.lost(key_id, reply.last).batches
                    continue
                del left[key_id][0]
                if isinstance(reply, Refused):
                    reason = reply.reason
                else:
                    stored.add(key_id, batch)
                if isinstance(reply, Refused) or not left[key_id]:
                    del left[key_id]
        return True, reason

    async def _check(self) -> float:
        return LOOK_SECONDS if await self.once() else _RETRY_SECONDS
