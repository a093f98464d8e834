"""One SQL statement: runs in a thread of its own, is interrupted from any other."""

import threading
import time
from typing import Any

import duckdb

from warehouse import sql
from warehouse.errors import LookupFailure, LookupTimeout

CLOSED = "the release was closed"

Row = tuple[Any, ...]


class Query:
    """`deadline` is as time.monotonic() has it. After it ran, `seconds` says how long."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, text: str, parameters: Row, deadline: float) -> None:
        self.deadline = deadline
        self.seconds = 0.0
        self.closed = False
        self.ended = threading.Event()
        self._connection = connection
        self._text = text
        self._parameters = list(parameters)
        self._cursor: duckdb.DuckDBPyConnection | None = None

    def run(self) -> list[Row]:
        """Raises LookupTimeout if the deadline passed, LookupFailure if the release was closed or the query failed."""
        started = time.monotonic()
        try:
            if started >= self.deadline:
                raise LookupTimeout("the deadline of the look-up passed")
            self._cursor = self._connection.cursor()
            if self.closed:
                raise LookupFailure(CLOSED)
            return self._cursor.execute(self._text, self._parameters).fetchall()
        except duckdb.InterruptException:
            if self.closed:
                raise LookupFailure(CLOSED) from None
            raise LookupTimeout("the deadline of the look-up passed") from None
        except duckdb.Error as error:
            raise LookupFailure(sql.reason(error)) from None
        finally:
            self.seconds = time.monotonic() - started
            self.ended.set()

    def interrupt(self) -> None:
        if self._cursor is not None:
            self._cursor.interrupt()
