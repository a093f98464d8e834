"""Connections to DuckDB that Ctrl-C can end, for commands. A worker's lookups have deadlines of their own."""

import contextlib
import weakref

import duckdb

_open: "weakref.WeakSet[duckdb.DuckDBPyConnection]" = weakref.WeakSet()


def connect() -> duckdb.DuckDBPyConnection:
    """A database in memory, whose query `interrupt` ends."""
    connection = duckdb.connect()
    _open.add(connection)
    return connection


def interrupt() -> None:
    """Ends the queries under way, for the handler of a signal.

    DuckDB notices a signal by itself, but then waits for the query if another of its threads is at work on it.
    """
    for connection in list(_open):
        with contextlib.suppress(duckdb.Error):  # it was closed meanwhile
            connection.interrupt()
