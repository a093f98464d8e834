"""The shared cache: entries in Redis. If anything is wrong with it, that is a miss, never an error of the request."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal

import msgspec

from service.cache import entry as envelope
from service.cache.entry import CacheEntry
from service.cache.key import TRIAL_NAME, CacheKey
from service.redis.batched_set import BatchedSet
from service.redis.errors import StoreUnavailable
from service.redis.opening import CacheStore, open_get

log = logging.getLogger("forecast.cache")

TRY_SECONDS = 1.0

SharedOutcome = Literal["hit", "miss", "damaged", "unavailable"]


class SharedLookup(msgspec.Struct, frozen=True, gc=False):
    """How a look-up ended."""

    outcome: SharedOutcome
    entry: CacheEntry | None = None  # on a hit only


TellLookup = Callable[[SharedLookup], None]


class SharedCache:
    """Entries in the Redis, or the cluster, behind `store`. One per worker, which stops it.

    `ttl`, in seconds, only collects garbage: entries never become wrong.
    """

    def __init__(self, store: CacheStore, ttl: int) -> None:
        self._store = store
        self._batched = open_get(store)
        self._stores = BatchedSet(store, ttl)

    @property
    def is_away(self) -> bool:
        """Nothing would be found: the server is not asked at the moment."""
        return self._store.is_away

    @property
    def refusal(self) -> str | None:
        """Why a server stores no entries. None while all do, or are away."""
        return None if self._store.is_away else self._stores.refusal

    @property
    def failed(self) -> Mapping[str, int]:
        """How many entries were not stored, by reason."""
        return self._stores.failed

    async def try_to_store(self) -> float:
        """Updates `refusal`, even if no requests come. Returns the seconds until the next try."""
        await self._stores.try_servers(TRIAL_NAME)
        return TRY_SECONDS

    async def get(self, key: CacheKey) -> SharedLookup:
        """Looks `key` up. Never raises: see `SharedOutcome`."""
        reply: asyncio.Future[SharedLookup] = asyncio.get_running_loop().create_future()

        def found(lookup: SharedLookup) -> None:
            if not reply.done():
                reply.set_result(lookup)

        self.ask(key, found)
        return await reply

    def ask(self, key: CacheKey, found: TellLookup) -> None:
        """`get` without a task to wait in: `found` is called once, in a later turn of the loop. It must not raise."""
        self._batched.ask(key.name, partial(_tell, key.digest, found))

    async def stop(self) -> None:
        await self._batched.stop()

    def put(self, key: CacheKey, entry: CacheEntry) -> asyncio.Future[bool]:
        """Stores `entry`. The future tells whether that succeeded; nobody has to wait for it."""
        return self._stores.set(key.name, envelope.encode_entry(entry, key.digest))


def _tell(digest: bytes, found: TellLookup, value: bytes | StoreUnavailable | None) -> None:
    if value is None:
        found(SharedLookup("miss"))
    elif isinstance(value, StoreUnavailable):
        log.debug("cache look-up: %s", value)
        found(SharedLookup("unavailable"))
    else:
        entry = envelope.decode(value, digest)
        if entry is None:
            log.warning("the cache returned something else than the entry asked for; it was not served")
        found(SharedLookup("damaged" if entry is None else "hit", entry))
