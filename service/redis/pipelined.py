"""Our own connection: commands are pipelined, and replies come in order.

The client library does the same at several times the cost, and every hit in the shared cache pays it. The library
connects, with all options of the URL (TLS, users, databases); then we take over the connection. An unexpected reply
ends it: later replies could belong to any call.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Sequence
from time import monotonic
from typing import Any, Protocol, TypeVar

import hiredis
import msgspec
from redis.asyncio import Redis
from redis.exceptions import InvalidResponse, RedisError

from service.base.timeouts import OldestFirst

log = logging.getLogger("forecast.redis")

# Far more than the largest reply to one command.
_MOST_REPLY_BYTES = 128 << 20
# Length of an unexpected reply, in the log.
_SHOWN_CHARACTERS = 100

T = TypeVar("T")
Words = tuple[str | int | bytes, ...]
# Parses a reply. Raises UnexpectedReplyError if it cannot belong to the call.
Read = Callable[[object], T]


class UnexpectedReplyError(Exception):
    """The reply cannot belong to the call, so later ones may belong to other calls, too."""

    @classmethod
    def of(cls, reply: object) -> "UnexpectedReplyError":
        return cls(repr(reply)[:_SHOWN_CHARACTERS])


class ErrorReply(Exception):  # noqa: N818 - a reply of Redis, which is not raised
    """An error reply of Redis."""


class Call(msgspec.Struct, eq=False):
    """A command, until its `answer` is set: the reply parsed by `read`, or StoreUnavailable.

    `learn`, if set, changes the call for a server that does not know its script.
    """

    name: str  # the key: in a cluster, the command goes to the node that has it
    words: Words
    data: bytes  # the words as Redis reads them
    read: Read[Any]
    answer: asyncio.Future[Any]
    learn: Callable[["Call"], None] | None = None
    ahead: bytes = b""  # a command that is sent just before this one; its reply is ignored
    ignores: bool = False  # the next reply is that to `ahead`
    sent: float = 0.0  # of the last attempt, in monotonic seconds
    deadline: float = 0.0  # in monotonic seconds; only in a cluster
    redirects: int = 0

    def settle(self, reply: object) -> None:
        """Raises UnexpectedReplyError; the call then still waits."""
        try:
            value, answer = self.read(reply), self.answer
            if not answer.done():
                answer.set_result(value)
        except UnexpectedReplyError:
            raise
        except Exception as error:  # a defect of one caller must not affect the others
            log.exception("a reply to %s could not be read", self.words[0])
            self.fail(error)

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


def call_of(name: str, words: Words, read: Read[Any], learn: Callable[[Call], None] | None = None) -> Call:
    """Returns a call that is not sent yet; needs a running loop.

    Raises UnicodeEncodeError for words that cannot be sent.
    """
    return Call(name, words, pack(*words), read, asyncio.get_running_loop().create_future(), learn)


def pack(*words: str | int | bytes) -> bytes:
    """Encodes a command as Redis reads it."""
    packed: bytes = hiredis.pack_command(words)  # type: ignore[arg-type]  # a tuple
    return packed


def anything(reply: object) -> Any:
    """Reads any reply."""
    return reply


def value(reply: object) -> bytes | None:
    """Reads the reply to a GET."""
    if reply is None or type(reply) is bytes:
        return reply
    raise UnexpectedReplyError.of(reply)


class Owner(Protocol):
    """The opener of a connection, which opens another when it ends."""

    def answered(self) -> None:
        """Called when calls were answered without errors."""

    def refused(self, call: Call, error: str) -> None:
        """Called with a call that got an error reply."""

    def lost(self, connection: "PipelinedConnection", calls: Collection[Call], reason: str) -> None:
        """Called when the connection has ended; these calls will have no reply."""


class PipelinedConnection(asyncio.Protocol):
    """One connection of its `owner`. `timeout`, in seconds, is for each reply. `is_open` until a failure.

    `opener` is only held: from Python 3.11.5 on, a StreamWriter closes its transport when nothing refers to it.
    """

    def __init__(self, transport: asyncio.WriteTransport, timeout: float, owner: Owner, opener: object = None) -> None:
        self.is_open = True
        self._transport = transport
        self._timeout = timeout
        self._owner = owner
        self._opener = opener
        self._calls: deque[Call] = deque()
        self._late = OldestFirst(self._due, lambda _: self._end("Timeout reading from the server"))
        self._reader = hiredis.Reader(protocolError=UnexpectedReplyError, replyError=ErrorReply)
        self._unread = 0  # bytes of the reply that is arriving

    def send(self, calls: Sequence[Call]) -> None:
        """Sends at least one call, in one write, while the connection is open."""
        now = monotonic()
        parts: list[bytes] = []
        for one in calls:
            one.sent = now
            if one.ahead:
                one.ignores = True
                parts.append(one.ahead)
            parts.append(one.data)
        self._calls.extend(calls)
        self._transport.write(b"".join(parts))
        self._late.watch()

    def close(self) -> None:
        self._end("closed")

    def data_received(self, data: bytes) -> None:
        if not self.is_open:
            return
        self._unread += len(data)
        self._reader.feed(data)
        try:
            if not self._calls:
                raise UnexpectedReplyError("it answers no call")
            answered = False
            while self.is_open and (reply := self._reader.gets()) is not False:
                self._unread = 0
                answered |= self._take(reply)
            if self._unread > _MOST_REPLY_BYTES:
                raise UnexpectedReplyError("it is too long")
            if not self._calls and (self._reader.has_data() or not data.endswith(b"\n")):
                raise UnexpectedReplyError("it answers no call")
            if answered and self.is_open:
                self._owner.answered()
        except UnexpectedReplyError as error:
            self._end(f"unexpected reply: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(str(exc) if exc else "the connection was closed")

    def _take(self, reply: object) -> bool:
        """Handles one reply. Returns whether it answers a call, and is no error."""
        if not self._calls:
            raise UnexpectedReplyError("it answers no call")
        oldest = self._calls[0]
        if oldest.ignores:
            oldest.ignores = False
        elif type(reply) is ErrorReply:
            self._calls.popleft()
            self._owner.refused(oldest, str(reply))
        else:
            oldest.settle(reply)
            self._calls.popleft()
            return True
        return False

    def _due(self) -> float | None:
        return self._calls[0].sent + self._timeout if self._calls else None

    def _end(self, reason: str) -> None:
        if self.is_open:
            self.is_open = False
            self._transport.abort()
            calls, self._calls = self._calls, deque()
            self._owner.lost(self, calls, reason)


async def open_pipelined(client: Redis, owner: Owner) -> PipelinedConnection:
    """Opens a connection as `client` makes them.

    Raises:
        RedisError, OSError: if it cannot be made, or was closed meanwhile.
    """
    connection = client.connection_pool.make_connection()  # type: ignore[no-untyped-call]
    try:
        await connection.connect()
    except (RedisError, OSError):
        raise
    except Exception as error:  # the library documents no error for an unexpected reply, and stays connected
        await connection.disconnect(nowait=True)
        raise InvalidResponse(f"unexpected reply: {error!r}") from None
    writer = connection._writer  # noqa: SLF001 - private: the library's version is pinned
    transport = writer.transport
    if transport.is_closing() or connection._reader.at_eof():  # noqa: SLF001 - as above
        await connection.disconnect(nowait=True)  # there is nothing to notify later
        raise ConnectionResetError("closed before it was used")
    # the object that opened the connection must not close it
    connection._reader = connection._writer = None  # noqa: SLF001 - as above
    made = PipelinedConnection(transport, connection.limit, owner, writer)
    transport.set_protocol(made)
    return made
