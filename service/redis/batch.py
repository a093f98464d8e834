"""GETs of one turn of the event loop travel as one MGET: a round trip costs more than its keys (Decision 16)."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from config.once_per_turn import OncePerTurn
from service.base.tasks import hold_until_done
from service.redis.client import RedisStore
from service.redis.errors import StoreUnavailable
from service.redis.mget import MgetError, Values, open_mget
from service.redis.own_connection import OwnConnection

log = logging.getLogger("forecast.redis")

# Keys of one command: its reply stays small, and Redis soon serves others.
_MOST_KEYS = 64
# Commands under way at once. A key waits for the next command while one is under way, unless there are enough keys to
# fill one.
_MOST_COMMANDS = 8

# Called with the value, None if there is none, or the reason why it is unknown.
TellValue = Callable[["bytes | StoreUnavailable | None"], None]
_Batch = list[tuple[str, TellValue]]


class BatchedGet:
    """Looks up values by name for the shared cache of one worker, which owns it and stops it with the worker.

    Callers of one turn share a command and its failure. Commands use a connection of their own (mget.py), or the slower
    client while there is none.
    """

    def __init__(self, store: RedisStore) -> None:
        self._store = store
        self._waiting: _Batch = []
        self._turn = OncePerTurn(self._send)
        self._under_way = 0
        self._commands: set[asyncio.Task[None]] = set()
        self._own = OwnConnection(store, open_mget)
        self._stopped = False

    async def get(self, name: str) -> bytes | None:
        """Raises StoreUnavailable."""
        reply: asyncio.Future[bytes | StoreUnavailable | None] = asyncio.get_running_loop().create_future()

        def found(value: bytes | StoreUnavailable | None) -> None:
            if not reply.done():
                reply.set_result(value)

        self.ask(name, found)
        value = await reply
        if isinstance(value, StoreUnavailable):
            raise value
        return value

    def ask(self, name: str, found: TellValue) -> None:
        """`found` is called once, in a later turn. It must not raise; if it does, that is logged."""
        self._waiting.append((name, found))
        self._turn.soon()

    async def stop(self) -> None:
        """Tells everybody who waits, and whoever comes later, that the store is unavailable."""
        self._stopped = True
        await self._own.stop()
        if self._commands:  # each ends within the client's budget
            await asyncio.wait(self._commands)

    def _send(self) -> None:
        if self._stopped:
            batch, self._waiting = self._waiting, []
            _tell(batch, StoreUnavailable(f"{self._store.name}: stopped"))
        while self._waiting and (
            not self._under_way or (len(self._waiting) >= _MOST_KEYS and self._under_way < _MOST_COMMANDS)
        ):
            batch, self._waiting = self._waiting[:_MOST_KEYS], self._waiting[_MOST_KEYS:]
            self._under_way += 1
            connection = self._own.current
            if connection is not None:
                connection.ask([name for name, _ in batch], partial(self._told, batch))
            else:
                # its own task: a caller that goes away must not cancel the command of the others
                hold_until_done(asyncio.create_task(self._run(batch)), self._commands)

    def _told(self, batch: _Batch, values: Values | MgetError) -> None:
        if not isinstance(values, MgetError):
            self._store.succeeded()
            self._end(batch, values)
        elif values.answered:
            self._end(batch, self._store.failed(values, answered=True))
        else:
            self._end(batch, self._own.lost(values))

    async def _run(self, batch: _Batch) -> None:
        names = [name for name, _ in batch]
        outcome: Values | StoreUnavailable = StoreUnavailable(f"{self._store.name}: not asked")
        try:
            values = await self._store.call(lambda client: client.mget(names))
            outcome = [value if isinstance(value, bytes) else None for value in values]
            if len(values) != len(names):
                outcome = StoreUnavailable(f"{self._store.name}: {len(names)} keys asked for, {len(values)} answered")
        except StoreUnavailable as error:
            outcome = error
        except BaseException as error:
            outcome = StoreUnavailable(str(error))
            raise
        finally:  # nobody may be left waiting, whatever went wrong
            self._end(batch, outcome)

    def _end(self, batch: _Batch, outcome: Values | StoreUnavailable) -> None:
        self._under_way -= 1
        _tell(batch, outcome)
        if self._waiting:
            self._send()


def _tell(batch: _Batch, outcome: Values | StoreUnavailable) -> None:
    values = [outcome] * len(batch) if isinstance(outcome, StoreUnavailable) else outcome
    for (_, found), value in zip(batch, values, strict=True):
        try:
            found(value)
        except Exception:  # a defect of one caller must not keep the others from being told
            log.exception("what was found could not be used")
