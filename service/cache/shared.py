"""The shared cache: entries in Redis. Whatever is wrong with it is a miss, never an error of the request."""

import asyncio
import logging
from typing import Literal

import msgspec

from service.cache import entry as envelope
from service.cache.entry import CacheEntry
from service.cache.key import CacheKey
from service.redis.batch import BatchedGet
from service.redis.batched_set import BatchedSet
from service.redis.client import RedisStore, StoreUnavailable

log = logging.getLogger("forecast.cache")

Outcome = Literal["hit", "miss", "damaged", "unavailable"]


class SharedLookup(msgspec.Struct, frozen=True):
    """`entry` is there on a hit only."""

    outcome: Outcome
    entry: CacheEntry | None = None


class SharedCache:
    """`ttl`, in seconds, only collects garbage: entries never become wrong."""

    def __init__(self, store: RedisStore, ttl: int) -> None:
        self._batched = BatchedGet(store)
        self._stores = BatchedSet(store, ttl)

    async def get(self, key: CacheKey) -> SharedLookup:
        try:
            data = await self._batched.get(key.name)
        except StoreUnavailable as error:
            log.debug("cache look-up: %s", error)
            return SharedLookup("unavailable")
        if data is None:
            return SharedLookup("miss")
        found = envelope.decode(data, key.digest)
        if found is None:
            log.warning("the cache returned something else than the entry asked for; it was not served")
            return SharedLookup("damaged")
        return SharedLookup("hit", found)

    def put(self, key: CacheKey, entry: CacheEntry) -> asyncio.Future[bool]:
        """Whether it was stored, some time; whoever does not care need not wait."""
        return self._stores.set(key.name, envelope.encode(entry, key.digest))
