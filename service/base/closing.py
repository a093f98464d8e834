"""Closes a connection so that its last answer arrives whole: a lingering close (RFC 9112, 9.6).

What a client sends behind the close makes the kernel reset the connection, and drop what it has not sent yet. So what
arrives is thrown away until the client has everything, or takes no more.
"""

import asyncio
import contextlib
import fcntl
import socket
import struct
import sys
import termios
from time import monotonic
from typing import Any

# Linux's SIOCOUTQNSD: bytes that wait in the kernel for room in the reader's window, or in the network's.
_NOT_SENT = 0x894B
# The same and what was sent, until the reader acknowledges it. An end that was sent counts as a byte.
_NOT_ACKNOWLEDGED = termios.TIOCOUTQ
_LOOK_SECONDS = 1.0
# Of what is thrown away; more is left to wait in the kernel, and with its sender.
_MOST_THROWN_AWAY = 256 << 10
# A reader that takes nothing for this long is gone, or stalls on purpose.
READ_SECONDS = 30.0

# SO_LINGER on, for 0 seconds.
_AT_ONCE = struct.pack("ii", 1, 0)


def close(transport: asyncio.Transport, connections: set[Any]) -> bool:
    """Closes it at once if that can cut nothing. Otherwise it lingers, with a protocol of its own among `connections`,
    and the result is True: to the protocol that it had, it is lost."""
    opened = transport.get_extra_info("socket")
    if (
        opened is None
        or transport.is_closing()
        or (not transport.get_write_buffer_size() and all_sent(opened.fileno()))
    ):
        transport.close()
        return False
    linger(transport, connections)
    return True


def linger(transport: asyncio.Transport, connections: set[Any]) -> None:
    """Whatever is left to send: something may be arriving already. To the protocol that it had, it is lost."""
    lingering = LingeringClose(connections)
    transport.set_protocol(lingering)
    lingering.connection_made(transport)


def reset(transport: asyncio.Transport) -> None:
    """Drops what is not sent, in the kernel as well, which would keep megabytes for a reader that never comes."""
    opened = transport.get_extra_info("socket")
    if opened is not None:
        drop_unsent(opened.fileno())
    transport.abort()


def drop_unsent(file: int) -> None:
    """Has the kernel drop what is not sent yet, and reset the connection, when the socket is closed."""
    with contextlib.suppress(OSError):
        opened = socket.socket(fileno=file)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        finally:
            opened.detach()


def all_sent(file: int) -> bool:
    """Whether the kernel keeps nothing of what was written that it has not sent yet."""
    return not _bytes(file, _NOT_SENT)


def _bytes(file: int, which: int) -> int:
    try:
        return int.from_bytes(fcntl.ioctl(file, which, b"\0\0\0\0"), sys.byteorder)
    except OSError:  # the other end has gone, or this is another system
        return 0


class LingeringClose(asyncio.Protocol):
    """The end of a connection: sends `rest` and what its transport holds, and throws away what arrives.

    It is over when the client has acknowledged everything or closes its side, or has taken nothing for `READ_SECONDS`.
    """

    def __init__(self, connections: set[Any], rest: bytes = b"") -> None:
        self._connections = connections
        self._rest = rest
        self._thrown_away = 0
        self._left = sys.maxsize
        self._took_at = monotonic()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport
        self._connections.add(self)
        self._alarm = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)
        transport.write(self._rest)
        self._rest = b""
        transport.write_eof()
        transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        self._thrown_away += len(data)
        if self._thrown_away > _MOST_THROWN_AWAY:
            self.transport.pause_reading()

    def connection_lost(self, _: Exception | None) -> None:
        self._alarm.cancel()
        self._connections.discard(self)

    def shutdown(self) -> None:
        """Called by the server when it stops: it closes anyway."""

    def _look(self) -> None:
        transport = self.transport
        now, left = monotonic(), transport.get_write_buffer_size()
        left += _bytes(transport.get_extra_info("socket").fileno(), _NOT_ACKNOWLEDGED)
        if left < self._left:
            self._left, self._took_at = left, now
        if not left:
            transport.close()
        elif now - self._took_at > READ_SECONDS:
            reset(transport)
        else:
            self._alarm = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)
