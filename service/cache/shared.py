"""The shared cache: entries in Redis. Any failure of it is a miss, never an error of the request."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Literal

import msgspec

from service.cache import entry as envelope
from service.cache.entry import CacheEntry
from service.cache.key import TRIAL_NAME, CacheKey
from service.cache.writer import EntryWriter
from service.redis.errors import StoreRefused, StoreUnavailable
from service.redis.opening import CacheStore
from service.redis.pipelined import value
from service.redis.refusals import WRONG_TYPE

log = logging.getLogger("forecast.cache")

TRY_SECONDS = 1.0

SharedOutcome = Literal["hit", "miss", "damaged", "unavailable"]


class SharedLookup(msgspec.Struct, frozen=True, gc=False):
    """The result of a look-up."""

    outcome: SharedOutcome
    entry: CacheEntry | None = None  # on a hit only


_MISS = SharedLookup("miss")


class SharedCache:
    """Entries in the Redis, or the cluster, behind `store`. One per worker.

    `ttl`, in seconds, only collects garbage: entries never become wrong.
    """

    def __init__(self, store: CacheStore, ttl: int) -> None:
        self._store = store
        self._writer = EntryWriter(store, ttl)

    @property
    def is_unreachable(self) -> bool:
        """Whether every read would miss, because the circuit to the server is open."""
        return self._store.is_unreachable

    @property
    def refusal(self) -> str | None:
        """Why a server stores no entries. None while all do, or are unreachable."""
        return None if self._store.is_unreachable else self._writer.refusal

    @property
    def failed(self) -> Mapping[str, int]:
        """How many entries were not stored, by reason."""
        return self._writer.failed

    async def try_to_store(self) -> float:
        """Updates `refusal`, even if no requests come. Returns the seconds until the next try."""
        await self._writer.try_servers(TRIAL_NAME)
        return TRY_SECONDS

    async def get(self, key: CacheKey) -> SharedLookup:
        """Looks `key` up. Never raises: see `SharedOutcome`."""
        name = key.name
        try:
            data = await self._store.send(name, ("GET", name), value)
        except StoreUnavailable as error:
            return _without_value(error)
        return _found(key, data)

    def put(self, key: CacheKey, entry: CacheEntry) -> asyncio.Future[bool]:
        """Stores `entry`. The future's result is whether that succeeded; it need not be awaited."""
        return self._writer.put(key.name, envelope.encode_entry(entry, key.digest))


def _found(key: CacheKey, data: bytes | None) -> SharedLookup:
    if data is None:
        return _MISS
    entry = envelope.decode(data, key.digest)
    if entry is None:
        log.warning("the cache returned another entry than requested; it was not served")
    return SharedLookup("damaged" if entry is None else "hit", entry)


def _without_value(error: BaseException) -> SharedLookup:
    if isinstance(error, StoreRefused) and error.text.startswith(WRONG_TYPE):
        return _MISS
    log.debug("cache look-up: %s", error)
    return SharedLookup("unavailable")
