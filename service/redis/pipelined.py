"""A connection of our own: commands are pipelined, and replies come in their order.

The client library does the same at several times the cost, and every hit in the shared cache pays it. The library
connects, with whatever the URL asks for (TLS, users, databases); then the connection is ours. An unexpected reply ends
it: what follows could belong to anybody.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Generic, Protocol, TypeVar

import hiredis
from redis.asyncio import Redis
from redis.exceptions import InvalidResponse, RedisError

from service.base.patience import Alarm

# Far more than the largest reply that one command can ask for.
_MOST_REPLY_BYTES = 128 << 20
# Of a reply that makes no sense, in the log.
_SHOWN_CHARACTERS = 40


class NonsenseError(Exception):
    """What arrived is not what was asked for."""

    @classmethod
    def of(cls, reply: object) -> "NonsenseError":
        return cls(repr(reply)[:_SHOWN_CHARACTERS])


class ErrorReply(Exception):  # noqa: N818 - a reply of Redis; nobody raises it
    """Redis answered with an error."""


class Sent(Protocol):
    """A command that waits for its reply."""

    sent: float  # monotonic seconds


C = TypeVar("C", bound=Sent)
P = TypeVar("P", bound=asyncio.BaseProtocol)


class PipelinedConnection(asyncio.Protocol, ABC, Generic[C]):
    """One connection; whoever opened it opens another when this one ends.

    `timeout`, in seconds, is for each reply. `is_open` until anything fails; every command was told of it then.
    `opener` is only held: from Python 3.11.5 on, a StreamWriter closes its transport when nobody holds the writer.
    """

    def __init__(self, transport: asyncio.WriteTransport, timeout: float, opener: object = None) -> None:
        self.is_open = True
        self._transport = transport
        self._opener = opener
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._commands: deque[C] = deque()
        self._alarm: Alarm | None = None
        self._due: C | None = None  # the command that the alarm is for
        self._reader = _reader()
        self._unread = 0  # bytes of the reply that is arriving

    @abstractmethod
    def _read(self, reply: object) -> None:
        """Takes the oldest command, of which there is one, and tells it. Raises NonsenseError if that is no reply."""

    @abstractmethod
    def _lost(self, command: C, reason: str) -> None:
        """There will be no reply."""

    def close(self) -> None:
        self._end("closed")

    def data_received(self, data: bytes) -> None:
        if not self.is_open:
            return
        self._unread += len(data)
        self._reader.feed(data)
        try:
            if not self._commands:
                raise NonsenseError("nothing was asked for")
            while (reply := self._reader.gets()) is not False:
                self._unread = 0
                if not self._commands:
                    raise NonsenseError("nothing was asked for")
                self._read(reply)
            if self._unread > _MOST_REPLY_BYTES:
                raise NonsenseError("it does not end")
        except NonsenseError as error:
            self._end(f"a reply that makes no sense: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(str(exc) if exc else "the connection was closed")

    def _begin(self) -> None:
        """Before a command: drops the beginning of a reply that nobody asked for."""
        if not self._commands:
            self._reader = _reader()

    def _send(self, data: bytes) -> None:
        """Sends commands that were appended."""
        self._transport.write(data)
        if self._alarm is None:
            self._due, self._alarm = self._commands[0], Alarm(self._timeout, self._look)

    def _take(self) -> C:
        command = self._commands.popleft()
        if not self._commands and self._alarm is not None:
            self._alarm.cancel()
            self._due = self._alarm = None
        return command

    def _look(self) -> None:
        """The time of one command is up. If it was answered, the alarm is set for the oldest: one serves all."""
        oldest = self._commands[0]
        if oldest is self._due:
            self._due = self._alarm = None
            self._end("Timeout reading from the server")
        else:
            self._due, self._alarm = oldest, Alarm(max(0.0, oldest.sent + self._timeout - monotonic()), self._look)

    def _end(self, reason: str) -> None:
        if not self.is_open:
            return
        self.is_open = False
        self._transport.abort()
        while self._commands:
            self._lost(self._take(), reason)


def _reader() -> hiredis.Reader:
    return hiredis.Reader(protocolError=NonsenseError, replyError=ErrorReply)


async def open_pipelined(client: Redis, make: Callable[[asyncio.WriteTransport, float, object], P]) -> P:
    """A connection as `client` makes them. `make` gets its transport, the client's timeout, and what to hold.

    Raises:
        RedisError, OSError: if it cannot be made, or was closed meanwhile.
    """
    connection = client.connection_pool.make_connection()  # type: ignore[no-untyped-call]
    try:
        await connection.connect()
    except (RedisError, OSError):
        raise
    except Exception as error:  # the library documents no error for a reply that makes no sense, and stays connected
        await connection.disconnect(nowait=True)
        raise InvalidResponse(f"a reply that makes no sense: {error!r}") from None
    writer = connection._writer  # noqa: SLF001 - the library is pinned for such uses
    transport = writer.transport
    if transport.is_closing() or connection._reader.at_eof():  # noqa: SLF001 - as above
        await connection.disconnect(nowait=True)  # nobody would tell us later
        raise ConnectionResetError("closed before it was used")
    # the object that opened the connection must not close it
    connection._reader = connection._writer = None  # noqa: SLF001 - as above
    made = make(transport, connection.limit, writer)
    transport.set_protocol(made)
    return made
