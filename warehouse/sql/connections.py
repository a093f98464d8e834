"""DuckDB connections for commands, whose queries Ctrl-C can end. Look-ups in workers have their own deadlines."""

import contextlib
import weakref

import duckdb

_open: "weakref.WeakSet[duckdb.DuckDBPyConnection]" = weakref.WeakSet()


def connect() -> duckdb.DuckDBPyConnection:
    """Returns a new in-memory database. `interrupt` ends its queries."""
    connection = duckdb.connect()
    _open.add(connection)
    return connection


def interrupt() -> None:
    """Ends all running queries. Safe to call from a signal handler.

    DuckDB notices a signal itself, but then waits until its other threads have finished the query.
    """
    for connection in list(_open):
        with contextlib.suppress(duckdb.Error):  # closed in the meantime
            connection.interrupt()
