"""Calls of one command, told by callbacks. Those of a turn of the event loop travel together.

On one server they have a connection of their own, and no turn passes between a reply and its caller. Turns that are
long are not waited for either. In a cluster, and while there is no connection, calls take the way of the client.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from time import monotonic

import msgspec
from redis.asyncio import Redis
from redis.exceptions import NoScriptError

from config.once_per_turn import OncePerTurn
from service.base.batched import batched
from service.base.tasks import hold_until_done
from service.redis.client import RedisStore
from service.redis.errors import StoreUnavailable
from service.redis.name_store import NameCommand, NameStore
from service.redis.own_connection import OwnConnection
from service.redis.pipelined import ErrorReply, NonsenseError, PipelinedConnection, open_pipelined
from service.redis.refusals import error_in, says_loading, says_not_primary
from service.redis.script import Script

log = logging.getLogger("forecast.redis")

# Calls of one command of the client, so that Redis soon serves others.
_MOST_CALLS = 64
# In a loop with thousands of ready connections a turn takes far longer than Redis.
_LONG_TURN_SECONDS = 0.001

# Called with the reply, with Redis' error, or with StoreUnavailable. False: that is no reply to this call, so the next
# ones may belong to others, too.
TellReply = Callable[[object], bool]
# What follows the command's first words.
Words = Sequence[str | int]


class _Call(msgspec.Struct, eq=False):
    words: Words
    told: TellReply
    sent: float = 0.0  # monotonic seconds

    def tell(self, reply: object) -> bool:
        try:
            return self.told(reply)
        except Exception:  # a defect of one caller must not keep the others from being told
            log.exception("a reply could not be used")
            return True


class Line(ABC):
    """The calls of one worker, which stops it. `first` are the words that all begin with.

    In a cluster each call has one name.
    """

    def __init__(self, store: NameStore, *first: str) -> None:
        self.first = first
        self.own = _own_connection(store, self) if isinstance(store, RedisStore) else None
        self._waiting: list[_Call] = []
        self._for_client: list[_Call] = []
        self._turn = OncePerTurn(self._turned)
        self._began = 0.0  # when the first call of this turn came, in monotonic seconds
        self._turns_are_long = False
        self._tasks: set[asyncio.Task[None]] = set()

    @abstractmethod
    async def by_client(self, calls: Sequence[Words]) -> Sequence[object]:
        """The reply to each call, or the error that it was answered with. Raises StoreUnavailable."""

    def call(self, words: Words, told: TellReply) -> None:
        """`told` is called once, after this returned."""
        self.call_all([(words, told)])

    def call_all(self, calls: Iterable[tuple[Words, TellReply]]) -> None:
        """Like `call`, for several calls that are sent in one write."""
        self._waiting += [_Call(words, told) for words, told in calls]
        if self._turn.soon():
            self._began = monotonic()
        if self._turns_are_long:
            self._send()

    async def stop(self) -> None:
        """Tells everybody who waits that the store is unavailable."""
        if self.own is not None:
            await self.own.stop()
        while self._tasks:  # each ends within the client's budget
            await asyncio.wait(self._tasks)

    def _turned(self) -> None:
        self._turns_are_long = monotonic() - self._began > _LONG_TURN_SECONDS
        if self._waiting and not self._send():
            self._for_client += self._waiting
            self._waiting = []
        calls, self._for_client = self._for_client, []
        for some in batched(calls, _MOST_CALLS):
            # its own task: a caller that goes away must not cancel the command of the others
            hold_until_done(asyncio.create_task(self._run(some)), self._tasks)

    def _send(self) -> bool:
        """Whether there was a connection to send all calls on."""
        connection = self.own.current if self.own is not None else None
        if connection is None:
            return False
        calls, self._waiting = self._waiting, []
        connection.call(calls)
        return True

    async def _run(self, calls: list[_Call]) -> None:
        try:
            replies = await self.by_client([call.words for call in calls])
        except BaseException as error:  # nobody may be left waiting, whatever went wrong
            for call in calls:
                call.tell(StoreUnavailable(str(error)))
            if isinstance(error, StoreUnavailable):
                return
            raise
        for call, reply in zip(calls, replies, strict=True):
            call.tell(reply)

    def retry(self, call: _Call) -> None:
        """By the client."""
        self._for_client.append(call)
        self._turn.soon()


class _Connection(PipelinedConnection[_Call]):
    def __init__(
        self,
        transport: asyncio.WriteTransport,
        timeout: float,
        opener: object,
        line: Line,
        store: RedisStore,
        lost: Callable[[Exception], StoreUnavailable],
    ) -> None:
        super().__init__(transport, timeout, opener)
        self._line = line
        self._store = store
        self._reason_of = lost

    def call(self, calls: Sequence[_Call]) -> None:
        """Sends `calls`, while the connection is open."""
        now, first = monotonic(), self._line.first
        commands = []
        for call in calls:
            call.sent = now
            commands.append(_packed((*first, *call.words)))
        self._begin()
        self._commands.extend(calls)
        self._send(b"".join(commands))

    def _read(self, reply: object) -> None:
        call = self._take()
        if isinstance(reply, ErrorReply):
            reply = error_in(str(reply))
            # the server was restarted: the client teaches it the script, and tells that it is away while it loads
            if isinstance(reply, NoScriptError) or says_loading(reply):
                self._line.retry(call)
                return
            if says_not_primary(reply):
                self._store.failed(reply, answered=True)
                call.tell(reply)
                return
        if not call.tell(reply):
            raise NonsenseError.of(reply)
        self._store.succeeded()

    def _lost(self, command: _Call, reason: str) -> None:
        command.tell(self._reason_of(ConnectionError(reason)))


def _own_connection(store: RedisStore, line: Line) -> OwnConnection[_Connection]:
    async def opened(client: Redis) -> _Connection:
        return await open_pipelined(
            client, lambda transport, timeout, opener: _Connection(transport, timeout, opener, line, store, own.lost)
        )

    own = OwnConnection(store, opened)
    return own


def _packed(words: Words) -> bytes:
    """One command as Redis reads it."""
    texts = [str(word) for word in words]
    command = "".join([f"*{len(texts)}\r\n", *[f"${len(text)}\r\n{text}\r\n" for text in texts]])
    if command.isascii():
        return command.encode("ascii")
    parts = [text.encode() for text in texts]
    return b"".join([b"*%d\r\n" % len(parts), *[b"$%d\r\n%b\r\n" % (len(part), part) for part in parts]])


class ScriptLine(Line):
    """The calls of one worker, which stops it. In a cluster each has one key."""

    def __init__(self, store: NameStore, script: Script) -> None:
        super().__init__(store, "EVALSHA", script.sha)
        self._store = store
        self._script = script

    async def by_client(self, calls: Sequence[Words]) -> Sequence[object]:
        return await self._script.run_by_name(self._store, calls)


class GetLine(Line):
    """The GETs of one worker, which stops it. Each call is one name."""

    def __init__(self, store: NameStore) -> None:
        super().__init__(store, "GET")
        self._store = store

    async def by_client(self, calls: Sequence[Words]) -> Sequence[object]:
        return await self._store.pipelined([NameCommand(str(name), ("GET", name)) for (name,) in calls])
