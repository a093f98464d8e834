"""Stores whose Redis is in this process: a double, or the test itself."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import hiredis
from fakeredis import FakeAsyncRedis, FakeRedis
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, RedisError

from service.redis.client import RedisStore
from service.redis.pipelined import Owner, PipelinedConnection


class Wire(asyncio.WriteTransport):
    """The server's end of a pipelined connection. `ended` is how often the connection was ended from our side."""

    def __init__(self, owner: Owner, timeout: float = 60) -> None:
        super().__init__()
        self.writes = 0
        self.ended = 0
        self.connection = PipelinedConnection(self, timeout, owner)
        self._sent = hiredis.Reader()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.ended, "written to a connection that was ended"
        self.writes += 1
        self._sent.feed(bytes(data))

    def abort(self) -> None:
        """As real transports do it: the protocol is notified in a later turn."""
        self.ended += 1
        asyncio.get_running_loop().call_soon(self.connection.connection_lost, None)

    def taken(self) -> list[list[bytes]]:
        """The commands that were sent since this was called last."""
        commands = []
        while (command := self._sent.gets()) is not False:
            commands.append(command)
        return commands

    def arrive(self, data: bytes, cuts: Sequence[int] = ()) -> None:
        """`data` in pieces, cut at these offsets."""
        for start, end in pairwise([0, *sorted(cuts), len(data)]):
            if end > start:
                self.connection.data_received(data[start:end])


class WiredStore(RedisStore):
    """Its pipelined connections end at the test, each at one of `wires`.

    While it is `gone`, there are no new ones; they are opened when `opening` is set. `timeout` is for each reply.
    """

    def __init__(self, client: Redis | None = None, name: str = "cache") -> None:
        super().__init__(name, "redis://double", client or FakeAsyncRedis())
        self.gone = False
        self.timeout = 60.0
        self.opened = 0
        self.opening = asyncio.Event()
        self.opening.set()
        self.wires: list[Wire] = []

    async def connect(self) -> PipelinedConnection:
        self.opened += 1
        await self.opening.wait()
        if self.gone:
            raise RedisConnectionError("refused")
        self.wires.append(self.wire())
        return self.wires[-1].connection

    def wire(self) -> Wire:
        return Wire(self.line, self.timeout)


class DoubledStore(WiredStore):
    """Commands on its connections are executed by the double behind `client`."""

    def __init__(self, client: Redis, name: str = "cache") -> None:
        super().__init__(client, name)
        self._server = client.connection_pool.make_connection()._server  # type: ignore[no-untyped-call]
        self._data = FakeRedis(server=self._server)
        self._data.response_callbacks.clear()

    async def connect(self) -> PipelinedConnection:
        if not self._server.connected:
            raise RedisConnectionError("refused")
        return await super().connect()

    def wire(self) -> Wire:
        return _ExecutingWire(self)

    def arrived(self, wire: Wire) -> None:
        """Something was written: replies in the next turn."""
        asyncio.get_running_loop().call_soon(lambda: wire.arrive(self.executed(wire)))

    def executed(self, wire: Wire) -> bytes:
        """The replies to what was written."""
        return b"".join(executed(self._data, words) for words in wire.taken())


class _ExecutingWire(Wire):
    def __init__(self, store: DoubledStore) -> None:
        super().__init__(store.line, store.timeout)
        self._store = store

    def write(self, data: bytes | bytearray | memoryview) -> None:
        super().write(data)
        self._store.arrived(self)


def executed(data: FakeRedis, words: Sequence[bytes]) -> bytes:
    """The reply to one command, as Redis writes it."""
    try:
        return encoded(data.execute_command(*words))  # type: ignore[no-untyped-call]
    except NoScriptError as error:
        return f"-NOSCRIPT {error}\r\n".encode()
    except RedisError as error:
        text = str(error)
        return f"-{text if text.split(' ')[0].isupper() else f'ERR {text}'}\r\n".encode()


def encoded(reply: Any) -> bytes:
    if reply is True or reply == b"OK":
        return b"+OK\r\n"
    if reply is None:
        return b"$-1\r\n"
    if isinstance(reply, int):
        return b":%d\r\n" % reply
    if isinstance(reply, list | tuple):
        return b"*%d\r\n%b" % (len(reply), b"".join(map(encoded, reply)))
    data = reply if isinstance(reply, bytes) else str(reply).encode()
    return b"$%d\r\n%b\r\n" % (len(data), data)
