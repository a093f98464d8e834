"""MGET on a connection of its own."""

from collections.abc import Callable, Sequence
from time import monotonic

from redis.asyncio import Redis

from service.redis.pipelined import ErrorReply, NonsenseError, PipelinedConnection, open_pipelined

Values = list[bytes | None]
# Called with the values, or with the reason why there are none.
Told = Callable[["Values | MgetError"], None]


class MgetError(Exception):
    """`answered`: Redis refused the command; else it is slow, gone, or answers nonsense."""

    def __init__(self, reason: str, *, answered: bool = False) -> None:
        super().__init__(reason)
        self.answered = answered


class _Command:
    __slots__ = ("count", "sent", "told")

    def __init__(self, count: int, sent: float, told: Told) -> None:
        self.count = count
        self.sent = sent
        self.told = told


class MgetConnection(PipelinedConnection[_Command]):
    """One connection of a BatchedGet, which opens another when this one ends."""

    def ask(self, names: Sequence[str], told: Told) -> None:
        """Asks for at least one name, all in ASCII. `told` is called once, after this returns, and must not raise."""
        if not self.is_open:
            self._loop.call_soon(told, MgetError("the connection was closed"))
            return
        words = "".join([f"${len(name)}\r\n{name}\r\n" for name in names])  # ASCII: as many bytes as characters
        command = f"*{len(names) + 1}\r\n$4\r\nMGET\r\n{words}".encode("ascii")
        self._begin()
        self._commands.append(_Command(len(names), monotonic(), told))
        self._send(command)

    def _read(self, reply: object) -> None:
        if isinstance(reply, ErrorReply):
            self._take().told(MgetError(str(reply), answered=True))
            return
        # exact types: a number is no value, and a push is no reply
        if type(reply) is not list or len(reply) != self._commands[0].count:
            raise NonsenseError.of(reply)
        for value in reply:
            if value is not None and type(value) is not bytes:
                raise NonsenseError.of(value)
        self._take().told(reply)

    def _lost(self, command: _Command, reason: str) -> None:
        command.told(MgetError(reason))


async def open_mget(client: Redis) -> MgetConnection:
    """A connection as `client` makes them.

    Raises:
        RedisError, OSError: if it cannot be made, or was closed meanwhile.
    """
    return await open_pipelined(client, MgetConnection)
