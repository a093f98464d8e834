"""A connection without a network: the real one on a channel that keeps what is written."""

import asyncio
from time import monotonic
from typing import Any

from uvicorn.server import ServerState

from service.connection import connection
from service.connection.door import Door

DATE = b"Fri, 20 Nov 2026 12:00:00 GMT"
_MOST_SECONDS = 60.0


class KeptChannel:
    """Its reader takes everything at once, unless the test says that it is blocked, or that it `lingers`."""

    def __init__(self, of: connection.Connection) -> None:
        self.connection: connection.Connection | None = of
        self.lingers = False
        self.file = 1
        self.is_blocked = False
        self.ends = False
        self.written = b""
        self.writes = 0
        self.reading = True

    def write(self, head: bytes, body: bytes) -> None:
        if not self.ends:
            self.written += head + body
            self.writes += 1

    def read(self, reads: bool) -> None:
        self.reading = reads

    def close(self, *, more_may_arrive: bool = False) -> None:
        self.ends = True
        if not more_may_arrive and not self.lingers:
            self.abort()

    def abort(self) -> None:
        lost, self.connection, self.file, self.ends = self.connection, None, -1, True
        if lost is not None:
            lost.lost()

    reset = abort


def start_clock(door: Door) -> None:
    """As a server does, whose clock stands still."""
    door.state = ServerState()
    door.state.default_headers = [(b"date", DATE)]
    door.dates = b"date: %b\r\n" % DATE


class Connection:
    """One connection to `door`, in the running loop, from `address`; what it sends `first` is there from the start."""

    def __init__(self, door: Door, address: str = "192.0.2.1", first: bytes = b"") -> None:
        self.door = door
        self.protocol = connection.Connection(door, (address, 50_000))
        self.channel = KeptChannel(self.protocol)
        self.protocol.channel = self.channel  # type: ignore[assignment]
        if first:
            self.receive(first)
        if not self.channel.ends:
            self.protocol.opened()

    @property
    def holds(self) -> bool:
        """Whether something that has arrived waits for what came before it."""
        return bool(self.protocol._held.data)

    @property
    def tasks(self) -> set[Any]:
        return self.door.state.tasks

    async def feed(self, data: bytes) -> None:
        """As the polling would hand it over: not while reading is paused, and not to a connection that is closed."""
        while not self.channel.reading and not self.channel.ends:
            await self.settle()
        if not self.channel.ends:
            self.receive(data)

    def receive(self, data: bytes) -> None:
        self.protocol.received(data, monotonic())

    def block(self) -> None:
        """Its reader takes nothing."""
        self.channel.is_blocked = True
        self.protocol.blocked()

    def unblock(self) -> None:
        """Its reader has taken everything."""
        self.channel.is_blocked = False
        self.protocol.unblocked()

    async def settle(self) -> None:
        """Until everything that arrived is answered, or waits for more, or the connection is closed."""
        await asyncio.sleep(0)
        until = asyncio.get_running_loop().time() + _MOST_SECONDS
        while (self.protocol._waits or self.holds) and not self.channel.ends:
            assert asyncio.get_running_loop().time() < until
            await asyncio.sleep(0.001)
        if self.tasks:
            done, pending = await asyncio.wait(list(self.tasks), timeout=_MOST_SECONDS)
            assert done, pending
            await self.settle()  # what was queued behind it

    def end(self) -> bytes:
        self.lose()
        return self.channel.written

    def lose(self) -> None:
        """Its other end goes away."""
        self.channel.abort()
