"""A connection without a network: the real protocol on a transport that keeps what is written."""

import asyncio
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from service.edge.connection.direct import DirectProtocol
from service.edge.gate import Gate

DATE = b"Fri, 20 Nov 2026 12:00:00 GMT"
_MOST_SECONDS = 60.0


class KeptTransport:
    def __init__(self) -> None:
        self.written = b""
        self.writes = 0
        self.closing = False
        self.reading = True

    def write(self, data: bytes) -> None:
        if self.closing:
            return  # as real ones do
        self.written += data
        self.writes += 1

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def write_eof(self) -> None:
        """Nothing more is written; closing follows."""

    def get_write_buffer_size(self) -> int:
        return 0  # its reader takes everything at once

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default


def server_state() -> ServerState:
    state = ServerState()
    state.default_headers = [(b"date", DATE)]
    return state


def made_protocol(gate: Gate, config: uvicorn.Config) -> DirectProtocol:
    """As a server makes it, in the running loop."""
    made = DirectProtocol(config, server_state(), {}, asyncio.get_running_loop())
    made.app = gate
    return made


class Connection:
    """One connection to `gate`, in the running loop. `protocol`: the one that it has already."""

    def __init__(self, gate: Gate, config: uvicorn.Config, protocol: DirectProtocol | None = None) -> None:
        self.transport = KeptTransport()
        self.gate = gate
        self.protocol = protocol or made_protocol(gate, config)
        self.protocol.connection_made(self.transport)  # type: ignore[arg-type]

    async def feed(self, data: bytes) -> None:
        """As the loop would hand it over: not while reading is paused, and not to a connection that is closed."""
        while not self.transport.reading and not self.transport.closing:
            await self.settle()
        if not self.transport.closing:
            self.protocol.data_received(data)

    async def settle(self) -> None:
        """Until everything that arrived is answered, or waits for more, or the connection is closed."""
        await asyncio.sleep(0)
        until = asyncio.get_running_loop().time() + _MOST_SECONDS
        while (self.protocol._asked is not None or self.protocol.flow.held) and not self.transport.closing:
            assert asyncio.get_running_loop().time() < until
            await asyncio.sleep(0.001)
        if self.protocol.tasks:
            done, pending = await asyncio.wait(list(self.protocol.tasks), timeout=_MOST_SECONDS)
            assert done, pending
            await self.settle()  # what was queued behind it

    def end(self) -> bytes:
        self.protocol.connection_lost(None)
        return self.transport.written
