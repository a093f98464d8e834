"""A connection without a network: the real protocol on a transport that keeps what is written."""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from service.connection.direct import DirectProtocol
from service.connection.door import Door
from service.connection.light import LightConnection, LightServer

DATE = b"Fri, 20 Nov 2026 12:00:00 GMT"
_MOST_SECONDS = 60.0


class KeptTransport:
    def __init__(self, protocol: DirectProtocol | LightConnection) -> None:
        self.protocol = protocol
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
        if isinstance(self.protocol, LightConnection):
            self.protocol.lost()

    def abort(self) -> None:
        self.close()

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def write_eof(self) -> None:
        """Nothing more is written; closing follows."""

    def get_write_buffer_size(self) -> int:
        return 0  # its reader takes everything at once

    def set_write_buffer_limits(self, high: int | None = None) -> None:
        """Its reader takes everything at once."""

    def set_protocol(self, protocol: DirectProtocol) -> None:
        self.protocol = protocol

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default


class KeptChannel:
    """The channel of a light connection, on such a transport."""

    def __init__(self, transport: KeptTransport) -> None:
        self._transport = transport

    def write_soon(self, answer: bytes) -> None:
        self._transport.write(answer)
        protocol = self._transport.protocol
        if isinstance(protocol, LightConnection) and protocol.closes:
            protocol.answered_last()

    def close(self, _: object) -> None:
        self._transport.closing = True

    def abort(self) -> None:
        self._transport.close()

    reset = abort

    def hand_over(self, protocol: DirectProtocol, failed: Callable[[], None]) -> None:
        del failed  # there is no other end
        self._transport.protocol = protocol
        protocol.connection_made(self._transport)  # type: ignore[arg-type]


def server_state() -> ServerState:
    state = ServerState()
    state.default_headers = [(b"date", DATE)]
    return state


def light_server(door: Door, config: uvicorn.Config) -> LightServer:
    """What the connections to `door` have in common, in the running loop."""
    state = server_state()
    return LightServer(door, lambda: _whole(door, config, state), state, config.timeout_keep_alive)


def _light(door: Door, config: uvicorn.Config) -> LightConnection:
    made = LightConnection(light_server(door, config), "")
    made.address = None  # as of a transport without a network
    return made


def _whole(door: Door, config: uvicorn.Config, state: ServerState) -> DirectProtocol:
    """As a server makes it, in the running loop."""
    made = DirectProtocol(config, state, {}, asyncio.get_running_loop())
    made.app = door
    return made


class Connection:
    """One connection to `door`, in the running loop. `protocol`: the one that it has already."""

    def __init__(self, door: Door, config: uvicorn.Config, protocol: LightConnection | None = None) -> None:
        self.door = door
        begins = protocol or _light(door, config)
        self.transport = KeptTransport(begins)
        if isinstance(begins, LightConnection):
            begins.channel = KeptChannel(self.transport)  # type: ignore[assignment]
            begins.opened()
        else:
            begins.connection_made(self.transport)

    @property
    def protocol(self) -> Any:
        """The one that has the connection now: another one may go on with it."""
        return self.transport.protocol

    @property
    def holds(self) -> bool:
        """Whether something that has arrived waits for what came before it."""
        return isinstance(self.protocol, DirectProtocol) and bool(self.protocol.flow.held)

    @property
    def tasks(self) -> set[Any]:
        return self.protocol.tasks if isinstance(self.protocol, DirectProtocol) else set()

    async def feed(self, data: bytes) -> None:
        """As the loop would hand it over: not while reading is paused, and not to a connection that is closed."""
        while not self.transport.reading and not self.transport.closing:
            await self.settle()
        if not self.transport.closing:
            self.receive(data)

    def receive(self, data: bytes) -> None:
        protocol = self.transport.protocol
        if not isinstance(protocol, LightConnection):
            protocol.data_received(data)
            return
        answer = protocol.received(data, monotonic())
        if answer is not None:
            self.transport.write(answer)
            if protocol.closes:
                protocol.answered_last()

    def pause_writing(self) -> None:
        """Its reader takes nothing."""
        if isinstance(self.protocol, LightConnection):
            self.protocol.unwritten(b"", is_last=False)
        self.protocol.pause_writing()

    async def settle(self) -> None:
        """Until everything that arrived is answered, or waits for more, or the connection is closed."""
        await asyncio.sleep(0)
        until = asyncio.get_running_loop().time() + _MOST_SECONDS
        while (getattr(self.protocol, "_asked", None) is not None or self.holds) and not self.transport.closing:
            assert asyncio.get_running_loop().time() < until
            await asyncio.sleep(0.001)
        if self.tasks:
            done, pending = await asyncio.wait(list(self.tasks), timeout=_MOST_SECONDS)
            assert done, pending
            await self.settle()  # what was queued behind it

    def end(self) -> bytes:
        self.lose()
        return self.transport.written

    def lose(self) -> None:
        """Its other end goes away."""
        if isinstance(self.protocol, LightConnection):
            self.protocol.lost()
        else:
            self.protocol.connection_lost(None)
