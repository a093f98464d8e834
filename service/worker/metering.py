"""Wires a worker's rates, quotas, usage and last errors together, and starts and stops them."""

import asyncio
from collections.abc import Callable

from config.resources import worker_count
from config.settings import Settings
from service.base.ipc import PartnerSample
from service.quota.flusher import UsageFlusher
from service.quota.last_errors import LastErrors
from service.quota.lease_store import LeaseStore
from service.quota.names import partner_id
from service.quota.quotas import QuotaGuard
from service.quota.rates import RateLimiter
from service.quota.report import UsageReport
from service.quota.spool import Spool
from service.quota.usage import UsageCounters
from service.quota.usage_store import UsageStore
from service.redis.opening import CachePlace, CacheStore, open_cache
from service.redis.primary import Primary, open_store

# No request waits for a flush, and a slow one must not make the key check treat its store as unreachable.
_STORE_TIMEOUT_SECONDS = 1.0


class Metering:
    """Rates, quotas, usage and last errors of one worker, part of its WorkerApp.

    `cache` keeps the buckets of rates, and its Redis the last errors; usage goes to that of the keys. `clock` is
    the time of day, in seconds since 1970.
    """

    def __init__(
        self,
        settings: Settings,
        keys_at: Primary,
        cache_at: CachePlace,
        cache: CacheStore,
        clock: Callable[[], float],
    ) -> None:
        self.workers = worker_count(settings)  # of all instances, as far as known
        self._redis = open_store("usage store", keys_at, timeout=_STORE_TIMEOUT_SECONDS)
        self.counters = UsageCounters(clock)
        self.errors = LastErrors(open_cache("store of errors", cache_at, timeout=_STORE_TIMEOUT_SECONDS))
        self.store = UsageStore(self._redis)
        self.report = UsageReport(self._redis)
        self.quotas = QuotaGuard(self.counters, self.store, lambda: self.workers, clock)
        self.limiter = RateLimiter(LeaseStore(cache), lambda: self.workers)
        self.flusher = UsageFlusher(self.counters, self.store, Spool(settings.data_path), self.quotas, clock)

    def add_limits(self, partners: list[PartnerSample]) -> list[PartnerSample]:
        """Adds the shares of quotas and the rates of the partners, and of their keys."""
        for partner in partners:
            holders = (*partner.keys, partner_id(partner.partner))
            quotas = (self.quotas.used_share(holder) for holder in holders)
            leases = (self.limiter.token_lease(holder) for holder in holders)
            partner.quota = max((share for share in quotas if share is not None), default=None)
            partner.rate = max((lease.rate.per_second for lease in leases if lease is not None), default=None)
            partner.keys.clear()
        return partners

    async def start(self) -> None:
        await asyncio.gather(self._redis.start(), self.errors.start())
        self.flusher.start()

    async def stop(self) -> None:
        """Stops; call it after the last request and before the cache's client is closed."""
        await self.limiter.stop()
        await self.flusher.stop()
        await self.errors.stop()
        await self._redis.stop()
