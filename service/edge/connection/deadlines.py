"""How long a connection may take: to send a head, to read what it asked for, to say something again."""

import asyncio
import contextlib
import socket
import struct
from abc import ABC, abstractmethod
from time import monotonic
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.edge.admission import limits

_AT_ONCE = struct.pack("ii", 1, 0)


class TimedProtocol(HttpToolsProtocol, ABC):
    """uvicorn's protocol, which knows one limit of time, with the others."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_message = False
        self._in_head = False
        self._alarm: asyncio.TimerHandle | None = None
        self._active_at = 0.0
        self._idle_alarm: asyncio.TimerHandle | None = None
        self._reader_alarm: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        for alarm in (self._alarm, self._idle_alarm, self._reader_alarm):
            if alarm is not None:
                alarm.cancel()
        super().connection_lost(exc)

    def _is_idle(self) -> bool:
        return self.cycle is None or bool(self.cycle.response_complete)

    @abstractmethod
    def _refuse(self, code: str) -> None:
        """The request that is arriving is answered with the error `code`, and the connection closed."""

    def _arm(self) -> None:
        self._alarm = self.loop.call_later(limits.HEAD_SECONDS, self._late)

    def _disarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _late(self) -> None:
        self._alarm = None
        if self.transport.is_closing():
            return
        if self._in_head:
            self._refuse("request_timeout")
        elif self._awaits_body():
            # the application hears that its client has gone, and what it answers to that goes nowhere
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self._refuse("request_timeout")
        else:
            self._close()  # silent, or sending a body long refused: there is nothing to answer

    def _awaits_body(self) -> bool:
        """Whether the request that is arriving is under way, alone, and has no answer yet."""
        return self._in_message and not self.pipeline and not self._is_idle() and not self.cycle.response_started

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reader_alarm = self.loop.call_later(limits.READ_SECONDS, reset, self.transport)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._reader_alarm is not None:
            self._reader_alarm.cancel()
            self._reader_alarm = None
        if self.transport.is_closing():
            self._watch_last_bytes()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._watch_last_bytes()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._watch_last_bytes()

    def _close(self) -> None:
        self.transport.close()
        self._watch_last_bytes()

    def _watch_last_bytes(self) -> None:
        """A transport that is closed waits for its reader without end, and nothing says so where little is left."""
        if self._reader_alarm is None and self.transport.get_write_buffer_size():
            self._reader_alarm = self.loop.call_later(limits.READ_SECONDS, reset, self.transport)

    def _watch_idle(self, seconds: float) -> None:
        """After a direct answer, as of `_active_at`: one alarm for all of a connection, since setting one for each
        would cost as much as answering."""
        self._idle_alarm = self.loop.call_later(seconds, self._look_whether_idle)

    def _look_whether_idle(self) -> None:
        self._idle_alarm = None
        if self._in_message or not self._is_idle() or self.timeout_keep_alive_task is not None:
            return  # the ordinary way has alarms of its own
        rest = self._active_at + self.timeout_keep_alive - monotonic()
        if rest > 0:
            self._watch_idle(rest)
        elif not self.transport.is_closing():
            self._close()


def reset(transport: asyncio.Transport) -> None:
    """Drops what is not sent, in the kernel as well, which would keep megabytes for a reader that never comes."""
    opened = transport.get_extra_info("socket")
    if opened is not None:
        with contextlib.suppress(OSError):
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
    transport.abort()
