"""Look-ups in the files of one release: locked-down DuckDB, a cursor per statement, deadlines, a bounded queue.

Look-ups by key that wait at the same time share one statement. Those from one turn of the event loop start together; a
single one does not wait for more. Those that arrive while a statement runs start together shortly after it ends, or
once it has run for `_LONG_SECONDS`.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb

from config.once_per_turn import OncePerTurn
from warehouse import sql
from warehouse.files.file_access import Hang
from warehouse.lookup.batching import LookupQueue, OnStatement, PendingLookup, distribute, shared_statement, singly
from warehouse.lookup.query import CLOSED, LookupStatement, Row, RunningQuery
from warehouse.schema.errors import LookupBusy, LookupFailure, LookupStuck, LookupTimeout

log = logging.getLogger("forecast.warehouse")

# One query uses a whole processor. A second thread lets a look-up overtake a slow one, and hides waits for the disk.
_THREADS = 2
# Measured: a statement takes 0.2 ms for one key and 0.4 ms for 16; if it reads the file, 0.9 and 1.6 ms. So look-ups
# that could share one wait for the running statement, unless it takes longer than this. One for a hundred scattered
# keys in a file does.
_LONG_SECONDS = 0.01
_INTERRUPT_EVERY_SECONDS = 0.02
# An interrupt ends a query within milliseconds, unless the query waits for the file system. After this long it counts
# as stuck. The engine can only interrupt it again, and does so less often.
_STUCK_SECONDS = 1.0
_INTERRUPT_STUCK_EVERY_SECONDS = 0.5
# If look-ups arrived while a statement ran, the next one waits for more: as long as the last one took, but at most
# this long. Measured with 32 callers: a fifth more of them share a statement.
_MAX_GATHERING_SECONDS = 0.002

# Called with the duration of a statement in seconds, and the number of look-ups that shared it.
ObserveStatement = Callable[[float, int], None]
# Called with the name of a look-up, in its caller's context; returns a callback for its statements, or None.
WatchLookup = Callable[[str], OnStatement | None]


class Engine:
    """Answers look-ups in one release. Owned by its `OpenRelease`, closed with it; used from one event loop."""

    def __init__(
        self,
        folder: Path,
        lookups: Mapping[str, LookupStatement],
        *,
        memory: int,
        timeout: float,
        queue: int,
        observe: ObserveStatement = lambda _seconds, _lookups: None,
        watch: WatchLookup = lambda _lookup: None,
        in_memory: bool = True,
    ) -> None:
        """Opens the files that `lookups` (by name) read in `folder`.

        `memory` is DuckDB's limit in bytes. `timeout` is each look-up's deadline in seconds, waiting included. `queue`
        is the number of look-ups allowed at once. `observe` is called after each statement with its duration in seconds
        and the number of look-ups that shared it. `watch` is called for each look-up. With `in_memory`, files are
        loaded into memory if possible and if they fit.

        Raises:
            LookupFailure: if a file cannot be opened.
        """
        self._timeout = timeout
        self._queue = queue
        self._observe = observe
        self._watch = watch
        self._lookups: dict[str, LookupStatement] = {}
        self._parsed: dict[str, duckdb.Statement] = {}
        self._waiting = LookupQueue()
        self._running: dict[RunningQuery, list[PendingLookup]] = {}
        self._turn = OncePerTurn(self._dispatch)
        self._closed = self._is_gathering = False
        self._connection = duckdb.connect()
        self._idle: list[duckdb.DuckDBPyConnection] = []
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="warehouse")
        try:
            plain, pattern = (sql.quoted(name) for name in (str(folder), sql.pattern(folder)))
            text = sql.statement("lock_down", memory=str(memory), folder=plain, pattern=pattern)
            self._connection.execute(text)
            for name, lookup in lookups.items():
                self._lookups[name] = self._open(name, lookup, folder, in_memory=in_memory)
            _release_memory()
        except (duckdb.Error, LookupFailure):
            self.close()
            raise

    def _open(self, name: str, lookup: LookupStatement, folder: Path, *, in_memory: bool) -> LookupStatement:
        """Returns `lookup` as the engine will run it. Loads its file into memory if allowed and possible."""
        if in_memory and lookup.loaded is not None:
            try:
                self._connection.execute(lookup.load)
                lookup = lookup.loaded
            except duckdb.Error as error:
                log.warning(
                    "%s in %s cannot be loaded into memory, so look-ups are slower: %s", name, folder, sql.reason(error)
                )
                self._connection.execute(sql.statement("unload_entries", area=name))
        try:
            # also caches the footer of a file
            self._connection.execute(lookup.text, list(lookup.probe)).fetchall()
        except duckdb.Error as error:
            raise LookupFailure(f"{name} in {folder} cannot be opened: {sql.reason(error)}") from None
        return lookup

    async def rows(self, lookup: str, *parameters: Any) -> list[Row]:
        """Returns the rows of a look-up, in its order. It does not share its statement.

        Raises:
            LookupBusy: if too many look-ups are waiting.
            LookupStuck: if every thread has a query that does not end.
            LookupTimeout: if the deadline passed.
            LookupFailure: if the query failed.
        """
        return await self._submit(lookup, (), parameters)

    async def entries(self, lookup: str, keys: Sequence[str]) -> list[bytes]:
        """Returns the entries of `keys`, in their order, from a look-up by key.

        Raises:
            LookupBusy, LookupStuck, LookupTimeout: as `rows` does.
            LookupFailure: also if a key has no entry.
        """
        return await self._submit(lookup, tuple(keys), ()) if keys else []

    @property
    def under_way(self) -> int:
        """The number of waiting and running look-ups. If its caller has gone, one counts until its statement ends."""
        return len(self._waiting) + sum(map(len, self._running.values()))

    @property
    def hang(self) -> Hang | None:
        """The query that has been stuck longest, measured from its deadline. None if none is stuck."""
        seconds = max((query.overdue for query in self._running), default=0.0)
        return Hang("warehouse query stuck", seconds) if seconds > _STUCK_SECONDS else None

    def close(self) -> None:
        """Fails all look-ups and ends their queries. Returns at once; threads end in the background."""
        if self._closed:
            return
        self._closed = True
        # not cancelled, because a caller could not tell that from its own task being cancelled
        for request in chain(self._waiting.take_all(), *self._running.values()):
            request.fail(LookupFailure(CLOSED))
        for query in self._running:
            query.closed = True
        self._threads.shutdown(wait=False)
        # in a thread, because closing a connection waits for its queries and would block the event loop
        threading.Thread(target=self._end, args=[list(self._running)], name="close warehouse").start()

    def _end(self, running: list[RunningQuery]) -> None:
        for query in running:
            while not query.ended.wait(_pause(query)):
                query.interrupt()
        for cursor in self._idle:
            cursor.close()
        self._connection.close()

    async def _submit(self, lookup: str, keys: tuple[str, ...], parameters: Row) -> list[Any]:
        if self._closed:
            raise LookupFailure(CLOSED)
        if self.under_way >= self._queue:
            raise LookupBusy(f"{self.under_way} look-ups are waiting for the warehouse")
        if len(self._running) == _THREADS and all(query.overdue > _STUCK_SECONDS for query in self._running):
            raise LookupStuck(str(self.hang))
        loop = asyncio.get_running_loop()
        deadline = time.monotonic() + self._timeout
        on_statement = self._watch(lookup)
        request = PendingLookup(
            self._lookups[lookup], loop.create_future(), deadline, keys, parameters, on_statement=on_statement
        )
        alarm = loop.call_later(self._timeout, self._expire, request)
        self._waiting.add(request)
        self._turn.soon()
        try:
            return await request.answer
        finally:
            alarm.cancel()
            self._waiting.discard(request)

    def _expire(self, request: PendingLookup) -> None:
        self._waiting.discard(request)
        request.fail(LookupTimeout("the deadline of the look-up passed"))

    def _dispatch(self) -> None:
        while self._waiting and len(self._running) < _THREADS and not self._should_wait():
            # some callers may have gone in this turn of the event loop
            requests = [request for request in self._waiting.take() if not request.over]
            if requests:
                self._start(requests)

    def _should_wait(self) -> bool:
        """Returns whether the next statement should wait a moment for more look-ups to share it."""
        return self._waiting.may_grow and (self._is_gathering or any(not query.is_long for query in self._running))

    def _start(self, requests: list[PendingLookup]) -> None:
        text, parameters = shared_statement(requests)
        try:
            # reusing a cursor saves 0.2 ms
            cursor = self._idle.pop() if self._idle else self._connection.cursor()
            if text not in self._parsed:
                (self._parsed[text],) = cursor.extract_statements(text)
            query = RunningQuery(cursor, self._parsed[text], parameters, max(one.deadline for one in requests))
            future = self._threads.submit(query.run)
        except (RuntimeError, duckdb.Error) as error:  # no thread could be started, or no cursor created
            _fail(requests, LookupFailure(str(error)))
            return
        self._running[query] = requests
        loop = asyncio.get_running_loop()
        alarms = (
            loop.call_later(_LONG_SECONDS, self._mark_long, query),
            loop.call_later(query.deadline - time.monotonic(), self._interrupt, query),
        )
        asyncio.wrap_future(future).add_done_callback(lambda done: self._ended(query, alarms, done))

    def _mark_long(self, query: RunningQuery) -> None:
        query.is_long = True
        self._turn.soon()

    def _gather(self, seconds: float) -> None:
        """Delays the next statement for `seconds`: callers that were just answered may send another look-up."""
        self._is_gathering = True
        asyncio.get_running_loop().call_later(seconds, self._stop_gathering)

    def _stop_gathering(self) -> None:
        self._is_gathering = False
        self._turn.soon()

    def _interrupt(self, query: RunningQuery) -> None:
        """Interrupts a query whose look-ups are all past their deadlines."""
        if query in self._running:
            query.interrupt()
            # an interrupt is lost if execution has not started yet, so it is repeated
            asyncio.get_running_loop().call_later(_pause(query), self._interrupt, query)

    def _ended(
        self, query: RunningQuery, alarms: Iterable[asyncio.TimerHandle], done: asyncio.Future[list[Row]]
    ) -> None:
        for alarm in alarms:
            alarm.cancel()
        requests = self._running.pop(query)
        error = done.exception()
        for request in requests:
            if request.on_statement is not None:
                failed = type(error).__name__ if error is not None else None
                request.on_statement(query.began, query.seconds, len(requests), failed)
        if error is None:
            if not self._closed:
                self._idle.append(query.cursor)
            distribute(requests, done.result())
            if self._waiting or len(requests) > 1:
                self._gather(min(query.seconds, _MAX_GATHERING_SECONDS))
        elif len(requests) > 1 and not self._closed:
            # a bad row group, or one key too many, must fail only the look-up that needs it
            self._waiting.put_back(singly(requests))
        else:
            _fail(requests, error)
        self._turn.soon()
        self._observe(query.seconds, len(requests))


def _release_memory() -> None:
    """Closes an empty database: DuckDB's allocator then returns the freed memory of all databases to the system.

    Otherwise it would keep 40 MB after loading the entries of a country. This takes some 20 ms.
    """
    duckdb.connect().close()


def _pause(query: RunningQuery) -> float:
    """Seconds until the query is interrupted again."""
    return _INTERRUPT_EVERY_SECONDS if query.overdue < _STUCK_SECONDS else _INTERRUPT_STUCK_EVERY_SECONDS


def _fail(requests: Iterable[PendingLookup], error: BaseException) -> None:
    for request in requests:
        request.fail(error)
