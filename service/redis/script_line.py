"""Calls of one script, told by callbacks. Those of a turn of the event loop travel together.

On one server they have a connection of their own, and no turn passes between a reply and its caller. Turns that are
long are not waited for either. In a cluster, and while there is no connection, calls take the way of the client.
"""

import asyncio
import logging
from functools import partial
from time import monotonic

import msgspec
from redis.exceptions import NoScriptError

from config.once_per_turn import OncePerTurn
from service.base.batched import batched
from service.base.tasks import hold_until_done
from service.redis.calls import CallConnection, LostError, TellReply, open_calls, packed
from service.redis.client import RedisStore
from service.redis.errors import StoreUnavailable
from service.redis.name_store import NameStore
from service.redis.own_connection import OwnConnection
from service.redis.pipelined import ErrorReply
from service.redis.refusals import error_in, says_not_primary
from service.redis.script import Script, ScriptCall

log = logging.getLogger("forecast.redis")

# Calls of one command of the client, so that Redis soon serves others.
_MOST_CALLS = 64
# In a loop with thousands of ready connections a turn takes far longer than Redis.
_LONG_TURN_SECONDS = 0.001


class _Call(msgspec.Struct, eq=False):
    words: ScriptCall
    told: TellReply | None
    teaches: bool = False  # it takes the script with it

    def tell(self, reply: object) -> None:
        told, self.told = self.told, None
        if told is not None:
            try:
                told(reply)
            except Exception:  # a defect of one caller must not keep the others from being told
                log.exception("the reply to a script could not be used")


class ScriptLine:
    """The calls of one worker, which stops it. Each has one key; a server that does not know the script is sent it."""

    def __init__(self, store: NameStore, script: Script) -> None:
        self._store = store
        self._script = script
        self._own: _Own | None = _Own(store) if isinstance(store, RedisStore) else None
        self._waiting: list[_Call] = []
        self._turn = OncePerTurn(self._turned)
        self._began = 0.0  # when the first call of this turn came, in monotonic seconds
        self._turns_are_long = False
        self._tasks: set[asyncio.Task[None]] = set()

    def call(self, words: ScriptCall, told: TellReply) -> None:
        """`told` is called once, after this returned: with the reply, with Redis' error, or with StoreUnavailable."""
        self._waiting.append(_Call(words, told))
        if self._turn.soon():
            self._began = monotonic()
        if self._turns_are_long:
            self._send()

    def read_early(self) -> None:
        """Tells those whose replies have arrived, before the event loop comes to them."""
        connection = self._own.current if self._own is not None else None
        if connection is not None:
            connection.read_early()

    async def stop(self) -> None:
        """Tells everybody who waits that the store is unavailable."""
        if self._own is not None:
            await self._own.stop()
        while self._tasks:  # each ends within the client's budget
            await asyncio.wait(self._tasks)

    def _turned(self) -> None:
        self._turns_are_long = monotonic() - self._began > _LONG_TURN_SECONDS
        if self._waiting and not self._send():
            waiting, self._waiting = self._waiting, []
            for calls in batched(waiting, _MOST_CALLS):
                # its own task: a caller that goes away must not cancel the command of the others
                hold_until_done(asyncio.create_task(self._run(calls)), self._tasks)

    def _send(self) -> bool:
        """Whether there was a connection to send all calls on."""
        connection = self._own.current if self._own is not None else None
        if connection is None:
            return False
        calls, self._waiting = self._waiting, []
        commands = [packed(("EVALSHA", self._script.sha, *call.words)) for call in calls]
        connection.call(b"".join(commands), [partial(self._replied, connection, call) for call in calls])
        return True

    def _replied(self, connection: CallConnection, call: _Call, reply: object) -> None:
        if isinstance(reply, ErrorReply):
            reply = error_in(str(reply))
            if isinstance(reply, NoScriptError) and not call.teaches:  # the server was restarted
                call.teaches = True
                text = packed(("EVAL", self._script.text, *call.words))
                connection.call(text, [partial(self._replied, connection, call)])
                return
        call.tell(self._own.judged(reply) if self._own is not None else reply)

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


class _Own(OwnConnection[CallConnection]):
    """The connection of a ScriptLine to one server, which hears how its calls ended."""

    def __init__(self, store: RedisStore) -> None:
        super().__init__(store, open_calls)

    def judged(self, reply: object) -> object:
        """What to tell of it."""
        if isinstance(reply, LostError):
            return self.lost(reply)
        if says_not_primary(reply) and isinstance(reply, Exception):
            self._store.failed(reply, answered=True)
        else:
            self._store.succeeded()
        return reply
