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

# Larger than any answer; a length beyond it is no length.
_MOST_BYTES = 256 << 20

Values = list[bytes | None]
# Told the values, or why there are none.
Told = Callable[["Values | MgetError"], None]


class MgetError(Exception):
    """`answered`: Redis refused the command; else it is slow, gone, or does not speak as it should."""

    def __init__(self, reason: str, *, answered: bool = False) -> None:
        super().__init__(reason)
        self.answered = answered


class _Command:
    __slots__ = ("count", "sent", "told")

    def __init__(self, count: int, sent: float, told: Told) -> None:
        self.count = count
        self.sent = sent
        self.told = told


class MgetConnection(asyncio.Protocol):
    """`timeout`, in seconds, is for each reply. `is_open` until anything fails; then every command was told so."""

    def __init__(self, transport: asyncio.WriteTransport, timeout: float) -> None:
        self.is_open = True
        self._transport = transport
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._commands: deque[_Command] = deque()
        self._alarm: asyncio.TimerHandle | None = None
        self._buffer = b""
        self._at = 0
        self._values: Values | None = None  # of the reply that is arriving

    def ask(self, names: Sequence[str], told: Told) -> None:
        """At least one name. `told` is called once, not before this returns."""
        self._commands.append(_Command(len(names), monotonic(), told))
        words = "".join([f"${len(name)}\r\n{name}\r\n" for name in names])  # ASCII: as many bytes as characters
        self._transport.write(f"*{len(names) + 1}\r\n$4\r\nMGET\r\n{words}".encode("ascii"))
        if self._alarm is None:
            self._alarm = self._loop.call_later(self._timeout, self._look)

    def close(self) -> None:
        self._end("closed")

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer[self._at :] + data if self._at < len(self._buffer) else data
        self._at = 0
        try:
            while self._at < len(self._buffer) and self._read():
                pass
        except ValueError as error:
            self._end(f"a reply that makes no sense: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(str(exc) if exc else "the connection was closed")

    def _read(self) -> bool:
        """Whether a whole reply was read, and told."""
        if self._values is None:
            line = self._line()
            if line is None:
                return False
            command = self._commands[0] if self._commands else None
            if line[:1] == b"-" and command is not None:
                self._tell(MgetError(line[1:].decode(errors="replace"), answered=True))
                return True
            if command is None or line != b"*%d" % command.count:
                raise ValueError(repr(line[:40]))
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
        end = buffer.find(b"\r\n", at)
        if end < 0:
            return False
        length = int(buffer[at + 1 : end]) if buffer.startswith(b"$", at) else _MOST_BYTES + 1
        if length == -1:
            values.append(None)
            self._at = end + 2
            return True
        if not 0 <= length <= _MOST_BYTES:
            raise ValueError(repr(buffer[at:end][:40]))
        start, end = end + 2, end + 2 + length
        if len(buffer) < end + 2:
            return False
        values.append(buffer[start:end])
        self._at = end + 2
        return True

    def _line(self) -> bytes | None:
        end = self._buffer.find(b"\r\n", self._at)
        if end < 0:
            return None
        line = self._buffer[self._at : end]
        self._at = end + 2
        return line

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
        RedisError, OSError: if it cannot be made.
    """
    connection = client.connection_pool.make_connection()  # type: ignore[no-untyped-call]
    await connection.connect()
    writer = getattr(connection, "_writer", None)
    if not isinstance(writer, asyncio.StreamWriter):
        await connection.disconnect()
        return None
    transport = writer.transport
    # or it would be closed with the object that opened it
    connection._reader = connection._writer = None  # noqa: SLF001 - the library is pinned for such uses
    made = MgetConnection(transport, connection.socket_timeout or 1.0)
    transport.set_protocol(made)
    return made
