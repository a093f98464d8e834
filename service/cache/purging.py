"""The shared cache emptied, as an operator orders it. What is in the key store stays, also where both are one Redis."""

from functools import partial

from redis.asyncio import Redis

from service.cache.key import EVERY_NAME, TRIAL_NAME
from service.redis.client import RedisStore, open_client

_TIMEOUT = 1.0
# Names looked at by one command: Redis serves nobody else meanwhile, some 0.2 ms.
_STEP = 500


async def purge_shared(url: str) -> int:
    """Deletes the entries of all releases; returns how many there were. What is stored meanwhile may stay.

    Raises:
        StoreUnavailable: if the cache does not answer; part of it may be gone.
    """
    store = RedisStore("shared cache", url, open_client(url, timeout=_TIMEOUT))
    gone, cursor = 0, -1
    try:
        while cursor != 0:
            cursor, unlinked = await store.call(partial(_purge_some, cursor=max(0, cursor)))
            gone += unlinked
        return gone
    finally:
        await store.stop()


async def _purge_some(client: Redis, cursor: int) -> tuple[int, int]:
    """Where to go on, 0 at the end; and how many entries went."""
    cursor, found = await client.scan(cursor, match=EVERY_NAME, count=_STEP)
    names = [name for name in found if name != TRIAL_NAME.encode()]
    return cursor, await client.unlink(*names) if names else 0
