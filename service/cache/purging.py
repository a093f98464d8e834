"""Empties the shared cache on an operator's order. The key store stays as it is, even on the same Redis."""

from service.cache.key import EVERY_NAME, TRIAL_NAME
from service.redis.client import RedisStore
from service.redis.primary import found, open_store
from service.redis.scan import scan

_TIMEOUT_SECONDS = 1.0
# Names that one command looks at. Redis serves nobody else meanwhile: some 0.2 ms.
_STEP = 500


async def purge_shared(url: str) -> int:
    """Deletes the entries of all releases. Returns how many there were. Entries that are stored meanwhile may stay.

    Raises:
        StoreUnavailable: if the cache does not answer. Some entries may be gone.
    """
    async with found(url) as primary:
        return await _purge(open_store("shared cache", primary, timeout=_TIMEOUT_SECONDS))


async def _purge(store: RedisStore) -> int:
    gone = 0
    try:
        async for found in scan(store, EVERY_NAME, _STEP):
            names = [name for name in found if name != TRIAL_NAME.encode()]
            if names:
                gone += await store.call(lambda client, these=names: client.unlink(*these))  # type: ignore[misc]
        return gone
    finally:
        await store.stop()
