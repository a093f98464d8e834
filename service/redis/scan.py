"""Names in a store, found in small steps, so that it serves others in between."""

from collections.abc import AsyncIterator

from service.redis.client import RedisStore


async def scan(store: RedisStore, pattern: str, step: int) -> AsyncIterator[list[bytes]]:
    """The names that match `pattern`, step by step, in no order, some perhaps twice. A step visits about `step` names.

    Raises:
        StoreUnavailable: if the store does not answer.
    """
    cursor = 0
    while True:
        cursor, names = await store.call(
            lambda client, at=cursor: client.scan(at, match=pattern, count=step)  # type: ignore[misc]
        )
        yield names
        if not cursor:
            return
