"""MGET on a connection of its own: commands are pipelined, and replies come in their order.

The client library does the same at several times the cost, and every hit in the shared cache pays it. The library
connects, with whatever the URL asks for (TLS, users, databases); then the connection is ours. An unexpected reply ends
it: what follows could belong to anybody.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic

import hiredis
from redis.asyncio import Redis

# Far more than the largest reply that one command can ask for.
_MOST_REPLY_BYTES = 128 << 20
# Of a reply that makes no sense, in the log.
_SHOWN_CHARACTERS = 40

Values = list[bytes | None]
# Called with the values, or with the reason why there are none.
Told = Callable[["Values | MgetError"], None]


class MgetError(Exception):
    """`answered`: Redis refused the command; else it is slow, gone, or answers nonsense."""

    def __init__(self, reason: str, *, answered: bool = False) -> None:
        super().__init__(reason)
        self.answered = answered


class _NonsenseError(Exception):
    """What arrived is not what was asked for."""


class _Refusal(Exception):  # noqa: N818 - a reply of Redis; nobody raises it
    """Redis answered with an error."""


class _Command:
    __slots__ = ("count", "sent", "told")

    def __init__(self, count: int, sent: float, told: Told) -> None:
        self.count = count
        self.sent = sent
        self.told = told


class MgetConnection(asyncio.Protocol):
    """One connection of a BatchedGet, which opens another when this one ends.

    `timeout`, in seconds, is for each reply. `is_open` until anything fails; every command was told of it then.
    `opener` is only held: from Python 3.11.5 on, a StreamWriter closes its transport when nobody holds the writer.
    """

    def __init__(self, transport: asyncio.WriteTransport, timeout: float, opener: object = None) -> None:
        self.is_open = True
        self._transport = transport
        self._opener = opener
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._commands: deque[_Command] = deque()
        self._alarm: asyncio.TimerHandle | None = None
        self._reader = _reader()
        self._unread = 0  # bytes of the reply that is arriving

    def ask(self, names: Sequence[str], told: Told) -> None:
        """Asks for at least one name, all in ASCII. `told` is called once, after this returns, and must not raise."""
        if not self.is_open:
            self._loop.call_soon(told, MgetError("the connection was closed"))
            return
        words = "".join([f"${len(name)}\r\n{name}\r\n" for name in names])  # ASCII: as many bytes as characters
        command = f"*{len(names) + 1}\r\n$4\r\nMGET\r\n{words}".encode("ascii")
        if not self._commands:
            self._reader = _reader()  # drops the beginning of a reply that nobody asked for
        self._commands.append(_Command(len(names), monotonic(), told))
        self._transport.write(command)
        if self._alarm is None:
            self._alarm = self._loop.call_later(self._timeout, self._look)

    def close(self) -> None:
        self._end("closed")

    def data_received(self, data: bytes) -> None:
        if not self.is_open:
            return
        self._unread += len(data)
        self._reader.feed(data)
        try:
            if not self._commands:
                raise _NonsenseError("nothing was asked for")
            while (reply := self._reader.gets()) is not False:
                self._unread = 0
                self._read(reply)
            if self._unread > _MOST_REPLY_BYTES:
                raise _NonsenseError("it does not end")
        except _NonsenseError as error:
            self._end(f"a reply that makes no sense: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(str(exc) if exc else "the connection was closed")

    def _read(self, reply: object) -> None:
        if not self._commands:
            raise _NonsenseError("nothing was asked for")
        if isinstance(reply, _Refusal):
            self._tell(MgetError(str(reply), answered=True))
            return
        # exact types: a number is no value, and a push is no reply
        if type(reply) is not list or len(reply) != self._commands[0].count:
            raise _NonsenseError(repr(reply)[:_SHOWN_CHARACTERS])
        for value in reply:
            if value is not None and type(value) is not bytes:
                raise _NonsenseError(repr(value)[:_SHOWN_CHARACTERS])
        self._tell(reply)

    def _tell(self, values: Values | MgetError) -> None:
        told = self._commands.popleft().told
        if not self._commands and self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        told(values)

    def _look(self) -> None:
        """Checks whether the oldest command has waited too long: one alarm serves all."""
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


def _reader() -> hiredis.Reader:
    return hiredis.Reader(protocolError=_NonsenseError, replyError=_Refusal)


async def open_mget(client: Redis) -> MgetConnection:
    """A connection as `client` makes them.

    Raises:
        RedisError, OSError: if it cannot be made, or was closed meanwhile.
    """
    connection = client.connection_pool.make_connection()  # type: ignore[no-untyped-call]
    await connection.connect()
    writer = connection._writer  # noqa: SLF001 - the library is pinned for such uses
    transport = writer.transport
    if transport.is_closing() or connection._reader.at_eof():  # noqa: SLF001 - as above
        await connection.disconnect(nowait=True)  # nobody would tell us later
        raise ConnectionResetError("closed before it was used")
    # the object that opened the connection must not close it
    connection._reader = connection._writer = None  # noqa: SLF001 - as above
    made = MgetConnection(transport, connection.socket_timeout or 1.0, opener=writer)
    transport.set_protocol(made)
    return made
