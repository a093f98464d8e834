"""uvicorn as both listeners use it: what it would do by itself is done by us, or not at all."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from service.base.accepting import Acceptor, FirstLook, Make
from service.base.polling import Adopting, Polling

# From what makes the server's own protocol, and the server's state: what makes one in its place, and what looks at what
# a connection sends first.
MakeLook = Callable[[Callable[..., Any], ServerState], tuple[Make, FirstLook]]


class ListenerServer(uvicorn.Server):
    """Leaves signals alone: supervisor and workers stop in their own order. One for each listener of a process.

    `look` makes what goes before the protocol of `config`.
    """

    def __init__(self, config: uvicorn.Config, look: MakeLook | None = None) -> None:
        super().__init__(config)
        self._look = look
        self._acceptors: list[Acceptor] = []
        self._polling: Polling | None = None

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn would take the signals of the process, and raise them again after stopping."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's, on `sockets` alone, which listen already."""
        await super().startup(sockets=[])
        made: Callable[..., asyncio.Protocol] = self.config.http_protocol_class
        own = partial(made, config=self.config, server_state=self.server_state, app_state={})
        make, look = self._look(own, self.server_state) if self._look is not None else (lambda _: own(), None)
        known = self.server_state.connections
        self._polling = polling = Polling(Adopting())
        self._acceptors = [Acceptor(listening, make, known, polling, look) for listening in sockets or []]
        for acceptor in self._acceptors:
            acceptor.start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for acceptor in self._acceptors:
            await acceptor.close()
        await super().shutdown(sockets)
        if self._polling is not None:
            self._polling.close()


def plain_config(app: Any, protocol: type[asyncio.Protocol], **timeouts: int) -> uvicorn.Config:
    """`app` over `protocol`. `timeouts`, in seconds, are named as uvicorn names them."""
    return uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        interface="asgi3",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # who connects counts, not what a header says
        **timeouts,  # type: ignore[arg-type]  # mypy takes them for every other option
    )
