"""Wires a worker's rates, quotas, usage and last errors together, and starts and stops them."""

import asyncio
import logging
from contextlib import suppress
from pathlib import Path

from config.settings import Settings
from config.sizing import worker_count
from service.base.tasks import end_task, keep_running
from service.quota.flusher import UsageFlusher
from service.quota.last_errors import LastErrors
from service.quota.lease_store import LeaseStore
from service.quota.quotas import QuotaGuard
from service.quota.rates import RateLimiter
from service.quota.report import UsageReport
from service.quota.spool import Spool
from service.quota.usage import UsageCounters
from service.quota.usage_store import UsageStore
from service.redis.name_store import NameStore
from service.redis.opening import CachePlace, open_cache
from service.redis.primary import Primary, open_store
from warehouse.files.file_access import FileAccess
from warehouse.releases.instances import live_instances
from warehouse.schema.errors import FilesHang

log = logging.getLogger("forecast.quota")

# Nobody waits for a flush, and a slow one must not make the key check believe that its store is away.
_USAGE_TIMEOUT_SECONDS = 1.0
_ERRORS_TIMEOUT_SECONDS = 1.0  # for the same reason
_COUNT_WORKERS_SECONDS = 5.0
# Threads for counting workers. A count may hang for ever, and is then tried again in another thread.
_FILE_THREADS = 3


class Metering:
    """Rates, quotas, usage and last errors of one worker, part of its WorkerApp.

    `cache` keeps the buckets of rates, and its Redis the last errors; usage goes to that of the keys.
    """

    def __init__(self, settings: Settings, keys_at: Primary, cache_at: CachePlace, cache: NameStore) -> None:
        self._data: Path = settings.data_path
        self._own_workers = worker_count(settings)
        self._workers = self._own_workers
        self._redis = open_store("usage store", keys_at, timeout=_USAGE_TIMEOUT_SECONDS)
        self._counting: asyncio.Task[None] | None = None
        self._files = FileAccess(_FILE_THREADS)
        self.counters = UsageCounters()
        self.errors = LastErrors(open_cache("store of errors", cache_at, timeout=_ERRORS_TIMEOUT_SECONDS))
        self.store = UsageStore(self._redis)
        self.report = UsageReport(self._redis)
        self.quotas = QuotaGuard(self.counters, self.store, lambda: self._workers)
        self.limiter = RateLimiter(LeaseStore(cache), lambda: self._workers)
        self._flusher = UsageFlusher(self.counters, self.store, Spool(self._data), self.quotas)

    @property
    def problem(self) -> str | None:
        """What keeps usage from being stored although its store answers."""
        return self._flusher.problem

    async def start(self) -> None:
        await asyncio.gather(self._redis.start(), self.errors.start())
        self._flusher.start()
        self._counting = keep_running("count workers", self._count_workers)

    async def stop(self) -> None:
        """Call after the last request and before the cache's client is closed."""
        await end_task(self._counting)
        await self.limiter.stop()
        await self._flusher.stop()
        await self.errors.stop()
        await self._redis.stop()

    async def _count_workers(self) -> float:
        """Counts the workers of all instances on the data folder: without Redis, each grants its share of a rate."""
        with suppress(OSError, FilesHang):
            what = "counting instances"
            records = await self._files.run(what, live_instances, self._data, wait=_COUNT_WORKERS_SECONDS)
            self._workers = max(self._own_workers, sum(len(record.releases) for record in records))
        return _COUNT_WORKERS_SECONDS
