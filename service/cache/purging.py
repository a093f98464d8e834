"""Empties the shared cache on an operator's order. The key store stays as it is, even on the same Redis."""

from service.cache.key import EVERY_NAME, is_trial
from service.redis.errors import StoreUnavailable
from service.redis.opening import opened
from service.redis.scan import scan

_TIMEOUT_SECONDS = 1.0
# Names that one command looks at. Redis serves nobody else meanwhile: some 0.2 ms.
_STEP = 500


async def purge_shared(url: str) -> int:
    """Deletes the entries of all releases. Returns how many there were. Entries that are stored meanwhile may stay.

    Raises:
        StoreUnavailable: if the cache does not answer. Some entries may be gone; of a cluster, those of other nodes.
    """
    gone, away = 0, None
    async with opened("shared cache", url, _TIMEOUT_SECONDS) as store:
        for server in store.servers:
            try:
                async for found in scan(server, EVERY_NAME, _STEP):
                    names = [name for name in found if not is_trial(name)]
                    gone += await store.unlink(names) if names else 0
            except StoreUnavailable as error:
                away = error
    if away is not None:
        raise away
    return gone
