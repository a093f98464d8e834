"""One request after the other: what arrives behind one that is under way is held until that one is answered.

A single read can bring thousands of requests. uvicorn begins with all of them at once, and goes on reading after each
answer, so that one connection could fill the memory.
"""

import asyncio
from time import monotonic
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl

from service.edge.admission import limits
from service.edge.connection.deadlines import TimedProtocol

# Every head ends with an empty line, so what lies between two of them completes at most one head.
END_OF_HEAD = b"\r\n\r\n"


class _Flow(FlowControl):
    """Does not resume reading while something is held, whoever asks for it."""

    holds = False

    def resume_reading(self) -> None:
        if not self.holds:
            super().resume_reading()


class OrderlyProtocol(TimedProtocol):
    """One connection.

    `_held` is what arrived and was not looked at yet, from `_held_from` on; None while nothing stands in the way of
    what arrives next. Once the connection has `_ended`, nothing is looked at any more.
    """

    flow: _Flow

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._held: bytes | None = None
        self._held_from = 0
        self._ended = False
        self._turn: asyncio.Handle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = _Flow(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._held is not None:
            if not self._ended:
                self._hold(self._held[self._held_from :] + data)
            return
        end = data.find(END_OF_HEAD)
        if (end < 0 or end + 4 == len(data)) and not self._must_wait():
            self._parse(data)
            return
        self._hold(data)
        self._go_on()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._held is not None:
            self._go_on_later()

    def _go_on_later(self) -> None:
        """A request was answered while something was held, or after the connection had ended."""
        if self._held and self._turn is None:
            self._turn = self.loop.call_soon(self._go_on)

    def _parse(self, data: bytes) -> None:
        """To the parser, with at most the rest of one request and the head of another."""
        super().data_received(data)

    def _take(self, data: bytes) -> None:
        """The same for what was held."""
        self._parse(data)

    def _must_wait(self) -> bool:
        """Whether a request is under way that does not wait for its own body."""
        return bool(self.pipeline) if self._in_message else not self._is_idle()

    def _hold(self, data: bytes) -> None:
        self.flow.pause_reading()
        self.flow.holds = True
        self._held, self._held_from = data, 0

    def _end(self) -> None:
        self._ended = True
        self._held = b""
        self.flow.holds = False
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None

    def _go_on(self) -> None:
        """Takes what is held, head by head, until a request has to be waited for or others should have their turn."""
        self._turn = None
        until = monotonic() + limits.TURN_SECONDS
        while self._held and not self._must_wait():
            if self.transport.is_closing():
                self._end()
            elif monotonic() > until:
                self._turn = self.loop.call_soon(self._go_on)
                return
            else:
                self._take(self._next_held(self._held))

    def _next_held(self, held: bytes) -> bytes:
        """The next head, or what there is of it. With the last one, reading is resumed."""
        start = self._held_from
        end = held.find(END_OF_HEAD, start)
        if end < 0 or end + len(END_OF_HEAD) == len(held):
            self._held = None
            self.flow.holds = False
            self.flow.resume_reading()
            return held[start:]
        self._held_from = end + len(END_OF_HEAD)
        return held[start : self._held_from]
