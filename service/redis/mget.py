"""MGET on a connection of its own: commands travel one behind the other, and replies come in their order.

The client library does the same at several times the cost of a value, and every hit in the shared cache is one. It
connects, with whatever the URL asks for (TLS, users, databases); then the connection is ours. What is not the reply
that was asked for ends it: whatever followed could belong to anybody.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic

from redis.asyncio import Redis

# Below a gigabyte, and larger than any answer.
_MOST_DIGITS = 9
# An error's text is the longest line there is.
_MOST_LINE_BYTES = 4096

Values = list[bytes | None]
# Told the values, or why there are none.
Told = Callable[["Values | MgetError"], None]


class MgetError(Exception):
    """`answered`: Redis refused the command; else it is slow, gone, or does not speak as it should."""

    def __init__(self, reason: str, *, answered: bool = False) -> None:
        super().__init__(reason)
        self.answered = answered


class _NonsenseError(Exception):
    """What arrived is not what was asked for."""


class _Command:
    __slots__ = ("count", "sent", "told")

    def __init__(self, count: int, sent: float, told: Told) -> None:
        self.count = count
        self.sent = sent
        self.told = told


class MgetConnection(asyncio.Protocol):
    """`timeout`, in seconds, is for each reply. `is_open` until anything fails; then every command was told so.

    `opener` is kept as long as this: a StreamWriter closes its transport when nobody holds it (from Python 3.11.5 on).
    """

    def __init__(self, transport: asyncio.WriteTransport, timeout: float, opener: object = None) -> None:
        self.is_open = True
        self._transport = transport
        self._opener = opener
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._commands: deque[_Command] = deque()
        self._alarm: asyncio.TimerHandle | None = None
        self._buffer = b""
        self._at = 0
        self._values: Values | None = None  # of the reply that is arriving

    def ask(self, names: Sequence[str], told: Told) -> None:
        """At least one name, all in ASCII. `told` is called once, not before this returns. It may not raise."""
        if not self.is_open:
            self._loop.call_soon(told, MgetError("the connection was closed"))
            return
        words = "".join([f"${len(name)}\r\n{name}\r\n" for name in names])  # ASCII: as many bytes as characters
        command = f"*{len(names) + 1}\r\n$4\r\nMGET\r\n{words}".encode("ascii")
        self._commands.append(_Command(len(names), monotonic(), told))
        self._transport.write(command)
        if self._alarm is None:
            self._alarm = self._loop.call_later(self._timeout, self._look)

    def close(self) -> None:
        self._end("closed")

    def data_received(self, data: bytes) -> None:
        if not self.is_open:
            return
        self._buffer = self._buffer[self._at :] + data if self._at < len(self._buffer) else data
        self._at = 0
        try:
            while self._at < len(self._buffer) and self._read():
                pass
        except _NonsenseError as error:
            self._end(f"a reply that makes no sense: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(str(exc) if exc else "the connection was closed")

    def _read(self) -> bool:
        """Whether a whole reply was read, and told."""
        if self._values is None:
            if not self._commands:
                raise _NonsenseError("nothing was asked for")
            line = self._line()
            if line is None:
                return False
            if line[:1] == b"-":
                self._tell(MgetError(line[1:].decode(errors="replace"), answered=True))
                return True
            if line != b"*%d" % self._commands[0].count:
                raise _NonsenseError(repr(line[:40]))
            self._values = []
        while len(self._values) < self._commands[0].count:
            if not self._read_value(self._values):
                return False
        values, self._values = self._values, None
        self._tell(values)
        return True

    def _read_value(self, values: Values) -> bool:
        """Whether the next value was there, whole."""
        buffer, at = self._buffer, self._at
        end = self._end_of_line()
        if end < 0:
            return False
        digits = buffer[at + 1 : end]  # int() alone would take signs, spaces and underscores
        if digits == b"-1" and buffer.startswith(b"$", at):
            values.append(None)
            self._at = end + 2
            return True
        if not (buffer.startswith(b"$", at) and digits.isdigit() and len(digits) <= _MOST_DIGITS):
            raise _NonsenseError(repr(buffer[at:end][:40]))
        start, end = end + 2, end + 2 + int(digits)
        if len(buffer) < end + 2:
            return False
        if not buffer.startswith(b"\r\n", end):
            raise _NonsenseError("a value that is longer than its length")
        values.append(buffer[start:end])
        self._at = end + 2
        return True

    def _line(self) -> bytes | None:
        end = self._end_of_line()
        if end < 0:
            return None
        line = self._buffer[self._at : end]
        self._at = end + 2
        return line

    def _end_of_line(self) -> int:
        """-1 if it has not arrived."""
        end = self._buffer.find(b"\r\n", self._at)
        if end < 0 and len(self._buffer) - self._at > _MOST_LINE_BYTES:
            raise _NonsenseError("a line without an end")
        return end

    def _tell(self, values: Values | MgetError) -> None:
        told = self._commands.popleft().told
        if not self._commands and self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        told(values)

    def _look(self) -> None:
        """One alarm for all: whether the oldest command waits too long."""
        rest = self._commands[0].sent + self._timeout - monotonic()
        if rest <= 0:
            self._alarm = None
            self._end("Timeout reading from the server")
        else:
            self._alarm = self._loop.call_later(rest, self._look)

    def _end(self, reason: str) -> None:
        if not self.is_open:
            return
        self.is_open = False
        self._transport.abort()
        while self._commands:
            self._tell(MgetError(reason))


async def open_mget(client: Redis) -> MgetConnection | None:
    """A connection as `client` makes them; None if its kind cannot be used so (doubles in tests).

    Raises:
        RedisError, OSError: if it cannot be made, or was closed meanwhile.
    """
    connection = client.connection_pool.make_connection()  # type: ignore[no-untyped-call]
    await connection.connect()
    writer = getattr(connection, "_writer", None)
    if not isinstance(writer, asyncio.StreamWriter):
        await connection.disconnect()
        return None
    transport = writer.transport
    if transport.is_closing() or connection._reader.at_eof():  # noqa: SLF001 - the library is pinned for such uses
        await connection.disconnect(nowait=True)  # we would not be told any more
        raise ConnectionResetError("closed before it was used")
    # or it would be closed with the object that opened it
    connection._reader = connection._writer = None  # noqa: SLF001 - as above
    made = MgetConnection(transport, connection.socket_timeout or 1.0, opener=writer)
    transport.set_protocol(made)
    return made
