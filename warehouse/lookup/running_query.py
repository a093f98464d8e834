"""One SQL statement, which runs in a thread and is interrupted from another."""

import threading
import time
from typing import Any

import duckdb

from warehouse import sql
from warehouse.schema.errors import LookupFailure, LookupTimeout

CLOSED = "the release was closed"

Row = tuple[Any, ...]


class RunningQuery:
    """One statement of an Engine, on a `cursor` that no other uses meanwhile.

    `deadline` is by `time.monotonic`. `is_long`: it has run for a while. `closed`: the release was closed. After it
    ran, `ended` is set and `seconds` says how long it took.
    """

    def __init__(self, cursor: duckdb.DuckDBPyConnection, text: str, parameters: Row, deadline: float) -> None:
        self.cursor = cursor
        self.deadline = deadline
        self.seconds = 0.0
        self.is_long = False
        self.closed = False
        self.ended = threading.Event()
        self._text = text
        self._parameters = list(parameters)

    @property
    def overdue(self) -> float:
        """Seconds since its deadline; negative before."""
        return time.monotonic() - self.deadline

    def run(self) -> list[Row]:
        """Raises LookupTimeout if the deadline passed, LookupFailure if the release was closed or the query failed."""
        started = time.monotonic()
        try:
            if started >= self.deadline:
                raise LookupTimeout("the deadline of the look-up passed")
            if self.closed:
                raise LookupFailure(CLOSED)
            return self.cursor.execute(self._text, self._parameters).fetchall()
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
        self.cursor.interrupt()
