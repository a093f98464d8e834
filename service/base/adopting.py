"""Gives files of sockets the loop's own transports."""

import asyncio
import socket
from collections.abc import Callable


class Adopting:
    """Part of one listener; `settled` at its end."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[object]] = set()

    def adopt(self, file: int, protocol: asyncio.Protocol, failed: Callable[[], None] | None = None) -> None:
        """In a later turn, `protocol` has the connection; or `failed` is called if its other end has gone."""
        task = self._loop.create_task(self._adopted(socket.socket(fileno=file), protocol, failed))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settled(self) -> None:
        """Returns when all that are under way have their transports."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _adopted(
        self, connection: socket.socket, protocol: asyncio.Protocol, failed: Callable[[], None] | None
    ) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: protocol, connection)
        except OSError:
            connection.close()
            if failed is not None:
                failed()
