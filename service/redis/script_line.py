"""Calls of one script, told by callbacks. Those of a turn of the event loop travel together.

On one server they have a connection of their own, and no turn passes between a reply and its caller. Turns that are
long are not waited for either. In a cluster, while there is no connection, and if the server does not know the script,
calls take the way of the client.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from time import monotonic

import msgspec
from redis.exceptions import NoScriptError

from config.once_per_turn import OncePerTurn
from service.base.batched import batched
from service.base.tasks import hold_until_done
from service.redis.client import RedisStore
from service.redis.errors import StoreUnavailable
from service.redis.name_store import NameStore
from service.redis.own_connection import OwnConnection
from service.redis.pipelined import ErrorReply, NonsenseError, PipelinedConnection, open_pipelined
from service.redis.refusals import error_in, says_not_primary
from service.redis.script import Script, ScriptCall

log = logging.getLogger("forecast.redis")

# Calls of one command of the client, so that Redis soon serves others.
_MOST_CALLS = 64
# In a loop with thousands of ready connections a turn takes far longer than Redis.
_LONG_TURN_SECONDS = 0.001

# Called with the reply, with Redis' error, or with StoreUnavailable. False: that is no reply to this call, so the next
# ones may belong to others, too.
TellReply = Callable[[object], bool]


class _Call(msgspec.Struct, eq=False):
    words: ScriptCall
    told: TellReply
    sent: float = 0.0  # monotonic seconds

    def tell(self, reply: object) -> bool:
        try:
            return self.told(reply)
        except Exception:  # a defect of one caller must not keep the others from being told
            log.exception("the reply to a script could not be used")
            return True


class ScriptLine:
    """The calls of one worker, which stops it. In a cluster each has one key. Words are in ASCII."""

    def __init__(self, store: NameStore, script: Script) -> None:
        self._store = store
        self._script = script
        self._server = _Server(store, script, self._unknown) if isinstance(store, RedisStore) else None
        self._waiting: list[_Call] = []
        self._for_client: list[_Call] = []
        self._turn = OncePerTurn(self._turned)
        self._began = 0.0  # when the first call of this turn came, in monotonic seconds
        self._turns_are_long = False
        self._tasks: set[asyncio.Task[None]] = set()

    def call(self, words: ScriptCall, told: TellReply) -> None:
        """`told` is called once, after this returned."""
        self._waiting.append(_Call(words, told))
        if self._turn.soon():
            self._began = monotonic()
        if self._turns_are_long:
            self._send()

    async def stop(self) -> None:
        """Tells everybody who waits that the store is unavailable."""
        if self._server is not None:
            await self._server.own.stop()
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

    def _unknown(self, call: _Call) -> None:
        """The server was restarted: the client teaches it the script."""
        self._for_client.append(call)
        self._turn.soon()

    def _send(self) -> bool:
        """Whether there was a connection to send all calls on."""
        connection = self._server.own.current if self._server is not None else None
        if connection is None:
            return False
        calls, self._waiting = self._waiting, []
        connection.call(calls)
        return True

    async def _run(self, calls: list[_Call]) -> None:
        try:
            replies = await self._script.run_by_name(self._store, [call.words for call in calls])
        except BaseException as error:  # nobody may be left waiting, whatever went wrong
            for call in calls:
                call.tell(StoreUnavailable(str(error)))
            if isinstance(error, StoreUnavailable):
                return
            raise
        for call, reply in zip(calls, replies, strict=True):
            call.tell(reply)


class _Server:
    """The one server that a ScriptLine calls, and its connection to it."""

    def __init__(self, store: RedisStore, script: Script, unknown: Callable[[_Call], None]) -> None:
        self.store = store
        self.script = script
        self.unknown = unknown
        self.own = OwnConnection(
            store,
            lambda client: open_pipelined(
                client, lambda transport, timeout, opener: _Connection(transport, timeout, opener, self)
            ),
        )


class _Connection(PipelinedConnection[_Call]):
    def __init__(self, transport: asyncio.WriteTransport, timeout: float, opener: object, server: _Server) -> None:
        super().__init__(transport, timeout, opener)
        self._server = server

    def call(self, calls: Sequence[_Call]) -> None:
        """Sends `calls`, while the connection is open."""
        now, sha = monotonic(), self._server.script.sha
        commands = []
        for call in calls:
            call.sent = now
            commands.append(_packed(("EVALSHA", sha, *call.words)))
        self._begin()
        self._commands.extend(calls)
        self._send(b"".join(commands))

    def _read(self, reply: object) -> None:
        call, store = self._take(), self._server.store
        if isinstance(reply, ErrorReply):
            reply = error_in(str(reply))
            if isinstance(reply, NoScriptError):
                self._server.unknown(call)
                return
            if says_not_primary(reply):
                store.failed(reply, answered=True)
                call.tell(reply)
                return
        if not call.tell(reply):
            raise NonsenseError.of(reply)
        store.succeeded()

    def _lost(self, command: _Call, reason: str) -> None:
        command.tell(self._server.own.lost(ConnectionError(reason)))


def _packed(words: Sequence[str | int]) -> bytes:
    """One command as Redis reads it."""
    texts = [str(word) for word in words]
    return "".join([f"*{len(texts)}\r\n", *[f"${len(text)}\r\n{text}\r\n" for text in texts]]).encode("ascii")
