"""Pipelined calls to one server. Those of one turn of the event loop are sent together (Decision 16)."""

import asyncio
import logging
import time
from collections.abc import Collection
from typing import TYPE_CHECKING

from redis.exceptions import NoScriptError

from config.once_per_turn import OncePerTurn
from service.base.tasks import end_task
from service.redis.errors import StoreUnavailable
from service.redis.pipelined import Call, PipelinedConnection
from service.redis.refusals import error_in, says_loading

if TYPE_CHECKING:
    from service.redis.client import RedisStore

log = logging.getLogger("forecast.redis")


class Line:
    """The pipelined calls of one RedisStore, which stops it.

    The connection is opened for the first call, and reopened for the next one after it was lost; calls wait for that.
    """

    def __init__(self, store: "RedisStore") -> None:
        self._store = store
        self._connection: PipelinedConnection | None = None
        self._opening: asyncio.Task[None] | None = None
        self._moves = 0
        self._waiting: list[Call] = []
        self._turn = OncePerTurn(self._flush)
        self._stopped = False

    @property
    def is_open(self) -> bool:
        """Whether calls are sent without waiting for a connection."""
        return self._connection is not None

    def send(self, call: Call) -> None:
        self._waiting.append(call)
        self._turn.soon()

    def leave(self) -> None:
        """Ends the connection, because the store moved. Calls under way fail; the next ones go to the new place."""
        self._moves += 1
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    async def stop(self) -> None:
        """Stops. Waiting calls and later ones fail."""
        self._stopped = True
        await end_task(self._opening)
        self.leave()
        self._flush()

    def answered(self) -> None:
        self._store.succeeded()

    def refused(self, call: Call, error: str) -> None:
        """Implements Owner. A restarted server knows no scripts, and is unreachable while it loads its data."""
        known = error_in(error)
        if isinstance(known, NoScriptError) and call.learn is not None:
            call.learn(call)
            self.send(call)
        elif says_loading(known):
            call.fail(self._store.failed(known, answered=False))
        elif not self._store.redirected(call, error):
            call.fail(self._store.failed(known, answered=True))

    def lost(self, connection: PipelinedConnection, calls: Collection[Call], reason: str) -> None:
        """Implements Owner. A lost connection counts as one failure, however many calls were under way; without any, as
        none.
        """
        error = StoreUnavailable(f"{self._store.name}: {reason}")
        if connection is self._connection:
            self._connection = None
            self._store.lost_at = time.monotonic()
            if calls:
                error = self._store.failed(ConnectionError(reason), answered=False)
        _fail(calls, error)

    def _flush(self) -> None:
        if not self._waiting:
            return
        if self._stopped or self._store.is_unreachable:
            state = "stopped" if self._stopped else "unreachable"
            self._fail_waiting(StoreUnavailable(f"{self._store.name} is {state}"))
        elif self._connection is not None:
            calls, self._waiting = self._waiting, []
            self._connection.send(calls)
        elif self._opening is None:
            self._opening = asyncio.create_task(self._open(), name=f"open a connection to the {self._store.name}")

    async def _open(self) -> None:
        moves = self._moves
        try:
            connection = await self._store.connect()
            if moves == self._moves:
                self._connection = connection
            else:  # it leads to the store's former place
                connection.close()
        except Exception as error:  # no call may wait forever
            if moves == self._moves:
                self._fail_waiting(self._store.explain(error))
        finally:
            self._opening = None
        self._flush()

    def _fail_waiting(self, error: StoreUnavailable) -> None:
        calls, self._waiting = self._waiting, []
        _fail(calls, error)


def _fail(calls: Collection[Call], error: StoreUnavailable) -> None:
    for call in calls:
        call.fail(error)
