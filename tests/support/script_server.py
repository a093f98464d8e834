"""A server of scripts that is the test itself: it sees what was sent on a connection, and replies whatever it likes."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

from fakeredis import FakeAsyncRedis
from redis.asyncio import Redis

from service.redis.client import RedisStore
from service.redis.line import ScriptLine


class Transport(asyncio.WriteTransport):
    """`calls` are the last words of the calls that were sent: their numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[int] = []
        self.aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.calls += map(int, re.findall(rb"\$\d+\r\n(\d+)\r\n(?=\*|$)", bytes(data)))

    def abort(self) -> None:
        self.aborted = True


class ScriptServer(RedisStore):
    """Each connection to it ends at the test, whose `open_pipelined` is `opened`. The client reaches a double."""

    def __init__(self, client: Redis) -> None:
        super().__init__("store", "redis://fake", client)
        self.transports: list[Transport] = []

    async def connection(self, made: Callable[[Redis], Awaitable[Any]]) -> Any:
        return await made(FakeAsyncRedis())

    async def opened(self, client: Redis, make: Callable[[Transport, float, object], Any]) -> Any:
        self.transports.append(Transport())
        return make(self.transports[-1], 60.0, None)


def connection(line: ScriptLine) -> Any:
    """The line's own connection, if it has one now."""
    assert line.own is not None
    return line.own.current
