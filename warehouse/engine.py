"""Look-ups in the files of one release: locked-down DuckDB, a cursor per query, a deadline, a bounded queue."""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import msgspec

from warehouse import sql
from warehouse.errors import LookupBusy, LookupFailure, LookupTimeout

# One query keeps a processor busy; a second thread only covers the moments in which the first waits for the disk.
_THREADS = 2
_INTERRUPT_EVERY = 0.02
_CLOSED = "the release was closed"

Row = tuple[Any, ...]


class Lookup(msgspec.Struct, frozen=True):
    """A statement, and parameters with which it finds nothing."""

    text: str
    probe: tuple[Any, ...]


class Engine:
    """Answers the named `lookups` from the files in `folder`. Used from one event loop."""

    def __init__(
        self,
        folder: Path,
        lookups: Mapping[str, Lookup],
        *,
        memory: int,
        timeout: float,
        queue: int,
        observe: Callable[[float], None] = lambda _: None,
    ) -> None:
        """`memory` is in bytes, `timeout` in seconds and includes waiting; `observe` is told each query's seconds.

        Raises:
            LookupFailure: if a file cannot be opened.
        """
        self._timeout = timeout
        self._queue = queue
        self._observe = observe
        self._under_way: dict[Future[list[Row]], _Query] = {}
        self._texts = {name: lookup.text for name, lookup in lookups.items()}
        self._connection = duckdb.connect()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="warehouse")
        try:
            plain, pattern = (sql.quoted(name) for name in (str(folder), sql.pattern(folder)))
            text = sql.statement("lock_down", memory=str(memory), folder=plain, pattern=pattern)
            self._connection.execute(text)
            for name, lookup in lookups.items():
                self._open(name, lookup, folder)
        except (duckdb.Error, LookupFailure):
            self.close()
            raise

    def _open(self, name: str, lookup: Lookup, folder: Path) -> None:
        """Opens the look-up's file and caches its footer."""
        try:
            self._connection.execute(lookup.text, list(lookup.probe)).fetchall()
        except duckdb.Error as error:
            raise LookupFailure(f"{name} in {folder} cannot be opened: {_first_line(error)}") from None

    async def rows(self, lookup: str, *parameters: Any) -> list[Row]:
        """The rows that the look-up of that name finds, in its order.

        Raises:
            LookupBusy: if too many look-ups wait already.
            LookupTimeout: if the deadline passed.
            LookupFailure: if the query failed.
        """
        # one whose caller has gone counts until it ends: it holds a thread, and keeps its deadline
        self._under_way = {future: query for future, query in self._under_way.items() if not future.done()}
        if len(self._under_way) >= self._queue:
            raise LookupBusy(f"{len(self._under_way)} look-ups wait for the warehouse already")
        query = _Query(self._connection, self._texts[lookup], parameters, time.monotonic() + self._timeout)
        try:
            future = self._threads.submit(query.run, self._observe)
        except RuntimeError:
            raise LookupFailure(_CLOSED) from None
        self._under_way[future] = query
        loop = asyncio.get_running_loop()
        alarm = loop.call_later(self._timeout, _expire, query, future, loop)
        try:
            return await asyncio.wrap_future(future)
        finally:
            if future.done():
                alarm.cancel()

    def close(self) -> None:
        """Look-ups that run or wait fail. Returns at once."""
        for query in self._under_way.values():
            query.closed = True
        # not cancel_futures: to whoever waits, a cancelled future looks like its own task being cancelled
        self._threads.shutdown(wait=False)
        # aside, because a connection waits at its end until no query runs, and would hold up the event loop
        threading.Thread(target=self._end, args=[dict(self._under_way)], name="close warehouse").start()

    def _end(self, under_way: dict[Future[list[Row]], "_Query"]) -> None:
        while running := [query for future, query in under_way.items() if not future.done()]:
            for query in running:
                query.interrupt()
            time.sleep(_INTERRUPT_EVERY)
        self._connection.close()


class _Query:
    """One look-up: runs in a thread of the pool, is interrupted from the event loop."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, text: str, parameters: Row, deadline: float) -> None:
        self._connection = connection
        self._text = text
        self._parameters = parameters
        self._deadline = deadline
        self._cursor: duckdb.DuckDBPyConnection | None = None
        self.closed = False

    def run(self, observe: Callable[[float], None]) -> list[Row]:
        started = time.monotonic()
        if started >= self._deadline:
            raise LookupTimeout("the deadline passed while the look-up waited")
        try:
            self._cursor = self._connection.cursor()
            if self.closed:
                raise LookupFailure(_CLOSED)
            return self._cursor.execute(self._text, list(self._parameters)).fetchall()
        except duckdb.InterruptException:
            if self.closed:
                raise LookupFailure(_CLOSED) from None
            raise LookupTimeout("the look-up did not end before its deadline") from None
        except duckdb.Error as error:
            raise LookupFailure(_first_line(error)) from None
        finally:
            observe(time.monotonic() - started)

    def interrupt(self) -> None:
        if self._cursor is not None:
            self._cursor.interrupt()


def _expire(query: _Query, future: Future[list[Row]], loop: asyncio.AbstractEventLoop) -> None:
    if not future.done():
        query.interrupt()
        # an interrupt before execution has begun is lost, so it is repeated
        loop.call_later(_INTERRUPT_EVERY, _expire, query, future, loop)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
