"""Look-ups in the files of one release: locked-down DuckDB, a cursor per query, a deadline, a bounded queue."""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb

from warehouse import sql
from warehouse.errors import LookupBusy, LookupFailure, LookupTimeout

# One query keeps a processor busy; a second thread only covers the moments in which the first waits for the disk.
_THREADS = 2
_INTERRUPT_EVERY = 0.02


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
        self._waiting = 0
        self._text = sql.statement("entries_by_zip_code", path=_quoted(entries))
        self._connection = duckdb.connect()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="warehouse")
        try:
            for line in sql.statement("lock_down", memory=str(memory), folder=_quoted(entries.parent)).split(";"):
                if line.strip():
                    self._connection.execute(line)
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
        if self._waiting >= self._queue:
            raise LookupBusy(f"{self._waiting} look-ups wait for the warehouse already")
        loop = asyncio.get_running_loop()
        query = _Query(self._connection, self._text, list(zip_codes), time.monotonic() + self._timeout)
        alarm = loop.call_later(self._timeout, query.expire, loop)
        self._waiting += 1
        try:
            return await loop.run_in_executor(self._threads, query.run, self._observe)
        except RuntimeError as error:  # the pool was shut down under us
            raise LookupFailure(str(error)) from None
        finally:
            self._waiting -= 1
            query.finished = True
            alarm.cancel()

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._connection.close()


class _Query:
    """One look-up: runs in a thread of the pool, is interrupted from the event loop."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, text: str, zip_codes: list[str], deadline: float) -> None:
        self._connection = connection
        self._text = text
        self._zip_codes = zip_codes
        self._deadline = deadline
        self._cursor: duckdb.DuckDBPyConnection | None = None
        self.finished = False

    def run(self, observe: Callable[[float], None]) -> list[bytes]:
        started = time.monotonic()
        if started >= self._deadline:
            raise LookupTimeout("the deadline passed while the look-up waited")
        self._cursor = self._connection.cursor()
        try:
            rows = self._cursor.execute(self._text, [self._zip_codes]).fetchall()
        except duckdb.InterruptException:
            raise LookupTimeout("the look-up did not end before its deadline") from None
        except duckdb.Error as error:
            raise LookupFailure(_first_line(error)) from None
        finally:
            self.finished = True
            observe(time.monotonic() - started)
        if len(rows) != len(self._zip_codes):
            raise LookupFailure(f"{len(self._zip_codes)} entries asked for, {len(rows)} found")
        return [row[0] for row in rows]

    def expire(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.finished:
            return
        if self._cursor is not None:
            self._cursor.interrupt()
        # an interrupt before execution has begun is lost, so it is repeated
        loop.call_later(_INTERRUPT_EVERY, self.expire, loop)


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
