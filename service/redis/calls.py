"""Any command on a connection of its own, told by callbacks."""

from collections.abc import Callable, Sequence
from time import monotonic

from redis.asyncio import Redis

from service.redis.pipelined import PipelinedConnection, open_pipelined


class LostError(Exception):
    """There is no reply: the server is slow, gone, or answers nonsense."""


# Called with the reply, an ErrorReply among them, or the reason why there is none.
TellReply = Callable[[object], None]


class _Command:
    __slots__ = ("sent", "tell")

    def __init__(self, sent: float, tell: TellReply) -> None:
        self.sent = sent
        self.tell = tell


class CallConnection(PipelinedConnection[_Command]):
    """Replies are read as early as their callers like."""

    def call(self, commands: bytes, tell: Sequence[TellReply]) -> None:
        """Sends `commands`, packed, while the connection is open. Each of `tell` is told of one, once, in their order,
        after this returns, and must not raise."""
        now = monotonic()
        self._begin()
        self._commands.extend([_Command(now, one) for one in tell])
        self._send(commands)

    def _read(self, reply: object) -> None:
        self._take().tell(reply)

    def _lost(self, command: _Command, reason: str) -> None:
        command.tell(LostError(reason))


async def open_calls(client: Redis) -> CallConnection:
    """A connection as `client` makes them.

    Raises:
        RedisError, OSError: if it cannot be made, or was closed meanwhile.
    """
    connection = await open_pipelined(client, CallConnection)
    connection.may_read_early()
    return connection


def packed(words: Sequence[str | int]) -> bytes:
    """One command as Redis reads it. Its words are in ASCII."""
    texts = [str(word) for word in words]
    return "".join([f"*{len(texts)}\r\n", *[f"${len(text)}\r\n{text}\r\n" for text in texts]]).encode("ascii")
