"""A store whose Redis is a double in this process."""

from collections.abc import Awaitable, Callable
from typing import Any

from fakeredis import FakeAsyncRedis
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from service.redis.client import RedisStore


class DoubledStore(RedisStore):
    """There is nothing to connect to, as on a server that takes no more connections: commands go by the client."""

    def __init__(self, client: FakeAsyncRedis, name: str = "cache") -> None:
        super().__init__(name, "redis://double", client)

    async def connection(self, made: Callable[[Redis], Awaitable[Any]]) -> Any:
        raise RedisConnectionError("a double has no connections")
