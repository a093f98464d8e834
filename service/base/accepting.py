"""Connections that wait to be accepted, while the event loop is busy.

libuv, below uvloop, accepts one connection in each turn of the loop. A turn of a busy worker takes 10 to 20 ms, so a
thousand new connections, as after a deploy or when a balancer comes back, would wait for up to 15 s. So after each that
libuv accepted, more are taken: one at first, twice as many in each turn that leaves some waiting. Not all at once, or
the first worker to look would have them all.
"""

import asyncio
import socket
from collections.abc import Callable

_MOST_AT_ONCE = 256


class Acceptor:
    """Takes what waits at `listening`, which belongs to a server of the running loop. One for each such server.

    `make` makes the protocol of a connection; the server is to use `accepted` instead.
    """

    def __init__(self, listening: socket.socket, make: Callable[[], asyncio.Protocol]) -> None:
        self._listening = listening
        self._make = make
        self._loop = asyncio.get_running_loop()
        self._next = 1  # how many are taken at most
        self._turn: asyncio.Handle | None = None
        self._adopting: set[asyncio.Task[object]] = set()
        self._closed = False

    def accepted(self) -> asyncio.Protocol:
        """The protocol of a connection that the server accepted; more may wait behind it."""
        if self._turn is None and not self._closed:
            self._turn = self._loop.call_soon(self._take_more)
        return self._make()

    async def close(self) -> None:
        """From now on none is taken. Returns when those that were have their protocols."""
        self._closed = True
        if self._turn is not None:
            self._turn.cancel()
        if self._adopting:
            await asyncio.wait(self._adopting)

    def _take_more(self) -> None:
        self._turn = None
        for _ in range(self._next):
            try:
                connection, _address = self._listening.accept()
            except OSError:  # none waits; or there is no room for more, which the server finds as well
                self._next = 1
                return
            connection.setblocking(False)
            adopting = self._loop.create_task(self._adopt(connection))
            self._adopting.add(adopting)
            adopting.add_done_callback(self._adopting.discard)
        self._next = min(2 * self._next, _MOST_AT_ONCE)

    async def _adopt(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make, connection)
        except OSError:  # its other end has gone already
            connection.close()
