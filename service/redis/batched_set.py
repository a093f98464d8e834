"""Values that are to be kept travel together: those of one turn of the event loop, and those that come while a command
is under way. Nobody waits for them, and a round trip costs more than its values.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from itertools import zip_longest

import msgspec
from redis.asyncio import Redis

from service.redis.client import RedisStore, StoreUnavailable

log = logging.getLogger("forecast.redis")

# Of one command. It keeps what Redis does before it serves others small.
_MOST_VALUES = 64
_MOST_BYTES = 1 << 20
# What waits for a store that is slow. Beyond it values are not stored, rather than memory filled with them.
_MOST_WAITING_BYTES = 16 << 20


class _Value(msgspec.Struct, eq=False):
    name: str
    data: bytes
    stored: asyncio.Future[bool]


class BatchedSet:
    """Values stay `ttl` seconds. One command is under way at a time."""

    def __init__(self, store: RedisStore, ttl: int) -> None:
        self._store = store
        self._ttl = ttl
        self._waiting: deque[_Value] = deque()
        self._waiting_bytes = 0
        self._sending: asyncio.Task[None] | None = None

    def set(self, name: str, data: bytes) -> asyncio.Future[bool]:
        """Whether it was stored, some time; whoever does not care need not wait."""
        stored: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if self._waiting_bytes + len(data) > _MOST_WAITING_BYTES:
            stored.set_result(False)
            return stored
        self._waiting.append(_Value(name, data, stored))
        self._waiting_bytes += len(data)
        if self._sending is None:
            self._sending = asyncio.create_task(self._send_all())
        return stored

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                await self._send(self._take())
        finally:  # by a defect too: nobody may be left waiting
            self._sending = None
            _tell(self._waiting, [])
            self._waiting.clear()
            self._waiting_bytes = 0

    def _take(self) -> list[_Value]:
        """The next command's, one at least."""
        taken: list[_Value] = []
        size = 0
        while self._waiting and len(taken) < _MOST_VALUES and (not taken or size < _MOST_BYTES):
            taken.append(self._waiting.popleft())
            size += len(taken[-1].data)
        self._waiting_bytes -= size
        return taken

    async def _send(self, values: list[_Value]) -> None:
        replies: list[object] = []
        try:
            replies = await self._store.call(lambda client: self._set(client, values))
        except StoreUnavailable as error:
            log.debug("%d values not stored: %s", len(values), error)
        finally:
            _tell(values, replies)

    async def _set(self, client: Redis, values: list[_Value]) -> list[object]:
        """The reply to each: True, or the error with which it was refused."""
        async with client.pipeline(transaction=False) as pipeline:
            for value in values:
                pipeline.execute_command("SET", value.name, value.data, "EX", self._ttl)
            return await pipeline.execute(raise_on_error=False)


def _tell(values: Iterable[_Value], replies: Iterable[object]) -> None:
    """A value without a reply was not stored."""
    for value, reply in zip_longest(values, replies):
        if not value.stored.done():
            value.stored.set_result(reply is True)
