"""The SQL of look-ups, and its runs in threads."""

import threading
import time
from collections.abc import Sequence
from typing import Any

import duckdb
import msgspec

from warehouse import sql
from warehouse.schema.errors import LookupFailure, LookupTimeout

CLOSED = "the release was closed"

Row = tuple[Any, ...]


class LookupStatement(msgspec.Struct, frozen=True):
    """The SQL of one look-up. Created when a release is opened, and owned by its engine.

    DuckDB plans a short list of placeholders better than one list parameter of any length. So a look-up by key has
    both forms.
    """

    text: str  # takes any number of keys, as one list
    probe: tuple[Any, ...]  # parameters of `text` that find no rows
    few: tuple[str, ...] = ()  # the same for exactly 1, 2, 3, ... keys, each with its own placeholder
    load: str = ""  # loads the file into a table in memory
    loaded: "LookupStatement | None" = None  # the same look-up in that table, if there is one

    def by_keys(self, keys: Sequence[str]) -> tuple[str, tuple[Any, ...]]:
        """Returns text and parameters of the statement for `keys`. There must be at least one."""
        if len(keys) <= len(self.few):
            return self.few[len(keys) - 1], tuple(keys)
        return self.text, (list(keys),)


class RunningQuery:
    """One run of a statement. The engine creates it, and drops it when the run ends.

    No other code may use `cursor` while it runs. `deadline` is a time.monotonic() value.
    """

    def __init__(
        self, cursor: duckdb.DuckDBPyConnection, statement: duckdb.Statement, parameters: Row, deadline: float
    ) -> None:
        self.cursor = cursor
        self.deadline = deadline
        self.began = 0.0  # monotonic seconds; set when it begins to run
        self.seconds = 0.0  # duration of the run; set when it ends
        self.is_long = False  # set by the engine when it has run for a while
        self.closed = False  # set by the engine when the release is closed
        self.ended = threading.Event()
        self._statement = statement
        self._parameters = list(parameters)

    @property
    def overdue(self) -> float:
        """Seconds since the deadline; negative before it."""
        return time.monotonic() - self.deadline

    def run(self) -> list[Row]:
        """Runs the statement, in the current thread.

        Raises:
            LookupTimeout: if the deadline passed.
            LookupFailure: if the release was closed or the query failed.
        """
        self.began = time.monotonic()
        try:
            if self.began >= self.deadline:
                raise LookupTimeout("the deadline of the look-up passed")
            if self.closed:
                raise LookupFailure(CLOSED)
            return self.cursor.execute(self._statement, self._parameters).fetchall()
        except duckdb.InterruptException:
            if self.closed:
                raise LookupFailure(CLOSED) from None
            raise LookupTimeout("the deadline of the look-up passed") from None
        except duckdb.Error as error:
            raise LookupFailure(sql.reason(error)) from None
        finally:
            self.seconds = time.monotonic() - self.began
            self.ended.set()

    def interrupt(self) -> None:
        """Interrupts the run. Callable from any thread; has no effect if the run has not started yet."""
        self.cursor.interrupt()
