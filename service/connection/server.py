"""uvicorn's server as both listeners use it, without its signal handling, binding and logging."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import uvicorn

from service.connection.accepting import Acceptor
from service.connection.connection import Connection
from service.connection.door import Door
from service.connection.polling import Polling
from service.request.response import lines_of


class ListenerServer(uvicorn.Server):
    """Serves the connections of a door; one for each listener of a process.

    Handles no signals: supervisor and workers stop in their own order. `drain`: seconds in which it waits for
    requests under way when it stops; None: until they are answered.
    """

    def __init__(self, door: Door, drain: int | None = None) -> None:
        config = uvicorn.Config(
            door.app,
            ws="none",
            interface="asgi3",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=drain,
        )
        super().__init__(config)
        self._door = door
        door.state = self.server_state

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Captures no signals: uvicorn would, and would raise them again after stopping."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts as uvicorn does, on `sockets` alone, which listen already."""
        await super().startup(sockets=[])
        self._polling = Polling()
        self._door.address = next((one.getsockname()[:2] for one in sockets or []), ("", 0))
        self._acceptors = [Acceptor(one, partial(Connection, self._door), self._polling) for one in sockets or []]
        for acceptor in self._acceptors:
            acceptor.start()

    async def on_tick(self, counter: int) -> bool:
        should_exit = await super().on_tick(counter)
        self._door.dates = lines_of(tuple(self.server_state.default_headers))
        return should_exit

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for acceptor in self._acceptors:
            acceptor.close()
        await super().shutdown(sockets)
        self._polling.close()
