"""Look-ups in the files of one release: locked-down DuckDB, a cursor per query, a deadline, a bounded queue."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import duckdb

from warehouse import sql
from warehouse.errors import LookupBusy, LookupFailure, LookupTimeout

# One query keeps a processor busy; a second thread only covers the moments in which the first waits for the disk.
_THREADS = 2
_INTERRUPT_EVERY = 0.02
_CLOSED = "the release was closed"


class Engine:
    """Answers look-ups from `entries`, a serving file sorted by ZIP code. Used from one event loop."""

    def __init__(
        self,
        entries: Path,
        *,
        memory: int,
        timeout: float,
        queue: int,
        observe: Callable[[float], None] = lambda _: None,
    ) -> None:
        """`memory` is in bytes, `timeout` in seconds and includes waiting; `observe` is told each query's seconds.

        Raises:
            LookupFailure: if the file cannot be opened.
        """
        self._timeout = timeout
        self._queue = queue
        self._observe = observe
        self._under_way: dict[Future[list[bytes]], _Query] = {}
        self._text = sql.statement("entries_by_zip_code", file=sql.rows_of(entries))
        self._connection = duckdb.connect()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="warehouse")
        try:
            folder, pattern = (sql.quoted(name) for name in (str(entries.parent), sql.pattern(entries.parent)))
            text = sql.statement("lock_down", memory=str(memory), folder=folder, pattern=pattern)
            self._connection.execute(text)
            self._connection.execute(self._text, [["00000"]]).fetchall()  # opens the file, caches its footer
        except duckdb.Error as error:
            self.close()
            raise LookupFailure(f"{entries} cannot be opened: {_first_line(error)}") from None

    async def entries(self, zip_codes: Sequence[str]) -> list[bytes]:
        """The encoded entries of `zip_codes`, ascending.

        Raises:
            LookupBusy: if too many look-ups wait already.
            LookupTimeout: if the deadline passed.
            LookupFailure: if the query failed or found fewer entries than asked for.
        """
        # one whose caller has gone counts until it ends: it holds a thread, and keeps its deadline
        self._under_way = {future: query for future, query in self._under_way.items() if not future.done()}
        if len(self._under_way) >= self._queue:
            raise LookupBusy(f"{len(self._under_way)} look-ups wait for the warehouse already")
        query = _Query(self._connection, self._text, list(zip_codes), time.monotonic() + self._timeout)
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

    def _end(self, under_way: dict[Future[list[bytes]], "_Query"]) -> None:
        while running := [query for future, query in under_way.items() if not future.done()]:
            for query in running:
                query.interrupt()
            time.sleep(_INTERRUPT_EVERY)
        self._connection.close()


class _Query:
    """One look-up: runs in a thread of the pool, is interrupted from the event loop."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, text: str, zip_codes: list[str], deadline: float) -> None:
        self._connection = connection
        self._text = text
        self._zip_codes = zip_codes
        self._deadline = deadline
        self._cursor: duckdb.DuckDBPyConnection | None = None
        self.closed = False

    def run(self, observe: Callable[[float], None]) -> list[bytes]:
        started = time.monotonic()
        if started >= self._deadline:
            raise LookupTimeout("the deadline passed while the look-up waited")
        try:
            self._cursor = self._connection.cursor()
            if self.closed:
                raise LookupFailure(_CLOSED)
            rows = self._cursor.execute(self._text, [self._zip_codes]).fetchall()
        except duckdb.InterruptException:
            if self.closed:
                raise LookupFailure(_CLOSED) from None
            raise LookupTimeout("the look-up did not end before its deadline") from None
        except duckdb.Error as error:
            raise LookupFailure(_first_line(error)) from None
        finally:
            observe(time.monotonic() - started)
        if len(rows) != len(self._zip_codes):
            raise LookupFailure(f"{len(self._zip_codes)} entries asked for, {len(rows)} found")
        return [row[0] for row in rows]

    def interrupt(self) -> None:
        if self._cursor is not None:
            self._cursor.interrupt()


def _expire(query: _Query, future: Future[list[bytes]], loop: asyncio.AbstractEventLoop) -> None:
    if not future.done():
        query.interrupt()
        # an interrupt before execution has begun is lost, so it is repeated
        loop.call_later(_INTERRUPT_EVERY, _expire, query, future, loop)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
