"""Waits until a change of the key store is on disk: a server may answer before its disk does."""

from redis.asyncio import Redis
from redis.exceptions import NoPermissionError, ResponseError

from service.redis.client import RedisStore
from service.redis.errors import StoreUnavailable

_WAIT_MILLISECONDS = 2000


async def make_durable(store: RedisStore) -> None:
    """Waits until the server's append-only file is on disk, if it has one and can say so (WAITAOF).

    Raises:
        StoreUnavailable: if that is not confirmed; the change is made all the same.
    """

    async def wait(client: Redis) -> None:
        try:
            reply = await client.execute_command("WAITAOF", 1, 0, _WAIT_MILLISECONDS)  # type: ignore[no-untyped-call]
        except NoPermissionError:
            raise StoreUnavailable(
                f"{store.name}: the change is made, but its user may not ask whether it is on disk; grant it +waitaof"
            ) from None
        except ResponseError:
            return  # older than 7.2, or without the file: its own configuration decides
        if not reply[0]:
            raise StoreUnavailable("key store: the change is made, but its disk has not confirmed it; check it")

    await store.call(wait)
