"""A connection of one's own to a store: opened when it is wanted, and anew when it was lost or the store moved."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

from redis.asyncio import Redis
from redis.exceptions import RedisError

from service.base.tasks import end_task
from service.redis.client import RedisStore
from service.redis.errors import StoreUnavailable
from service.redis.pipelined import PipelinedConnection

log = logging.getLogger("forecast.redis")

REOPEN_SECONDS = 0.5

P = TypeVar("P", bound=PipelinedConnection[Any])


class OwnConnection(Generic[P]):
    """The connection that `make` opens to `store`. Whoever has one stops it."""

    def __init__(self, store: RedisStore, make: Callable[[Redis], Awaitable[P]]) -> None:
        self._store = store
        self._make = make
        self._connection: P | None = None
        self._opening: asyncio.Task[None] | None = None
        self._reopen_at = 0.0
        self._moves = 0
        self._stopped = False
        store.follow(self._moved)

    @property
    def current(self) -> P | None:
        """None while there is none that can be used. Then one is opened, in a later turn, if the store is there."""
        connection = self._connection
        if connection is not None and connection.is_open and not self._store.is_away:
            return connection
        self._open()
        return None

    def lost(self, reason: Exception) -> StoreUnavailable:
        """What to tell of a command that had no reply. A lost connection counts as one failure, however many had
        none."""
        if self._connection is None:
            return StoreUnavailable(f"{self._store.name}: {reason}")
        self._connection = None
        return self._store.failed(reason, answered=False)

    async def stop(self) -> None:
        """Every command under way is told that the connection was closed, and none is opened any more."""
        self._stopped = True
        await end_task(self._opening)
        self._leave()

    def _moved(self) -> None:
        """Those who wait are told that nothing is known; whoever comes next is answered from the new place."""
        self._moves += 1
        self._reopen_at = 0.0
        self._leave()

    def _leave(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _open(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._opening is None and not self._stopped and now >= self._reopen_at and not self._store.is_away:
            self._reopen_at = now + REOPEN_SECONDS
            self._opening = asyncio.create_task(self._opened(), name=f"open a connection to the {self._store.name}")

    async def _opened(self) -> None:
        moves = self._moves
        try:
            connection = await self._store.connection(self._make)
            if moves == self._moves:
                self._connection = connection
            else:  # it leads to where the store was
                connection.close()
        except (RedisError, OSError) as error:
            log.debug("%s: no connection of its own: %s", self._store.name, error)
        finally:
            self._opening = None
