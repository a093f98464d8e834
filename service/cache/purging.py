"""The shared cache emptied, as an operator orders it. What is in the key store stays, also where both are one Redis."""

from service.cache.key import EVERY_NAME, TRIAL_NAME
from service.redis.client import RedisStore, open_client
from service.redis.scan import scan

_TIMEOUT = 1.0
# Names looked at by one command: Redis serves nobody else meanwhile, some 0.2 ms.
_STEP = 500


async def purge_shared(url: str) -> int:
    """Deletes the entries of all releases; returns how many there were. What is stored meanwhile may stay.

    Raises:
        StoreUnavailable: if the cache does not answer; part of it may be gone.
    """
    store = RedisStore("shared cache", url, open_client(url, timeout=_TIMEOUT))
    gone = 0
    try:
        async for found in scan(store, EVERY_NAME, _STEP):
            names = [name for name in found if name != TRIAL_NAME.encode()]
            if names:
                gone += await store.call(lambda client, these=names: client.unlink(*these))  # type: ignore[misc]
        return gone
    finally:
        await store.stop()
