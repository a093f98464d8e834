"""The shared cache: entries in Redis. Whatever is wrong with it is a miss, never an error of the request."""

import logging
from typing import Literal

import msgspec

from service.cache import entry as envelope
from service.cache.entry import CacheEntry
from service.cache.key import CacheKey
from service.redis.batch import BatchedGet
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
        self._store = store
        self._batched = BatchedGet(store)
        self._ttl = ttl

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

    async def put(self, key: CacheKey, entry: CacheEntry) -> bool:
        """Whether it was stored."""
        data = envelope.encode(entry, key.digest)
        try:
            await self._store.call(lambda client: client.set(key.name, data, ex=self._ttl))
        except StoreUnavailable as error:
            log.debug("cache store: %s", error)
            return False
        return True
