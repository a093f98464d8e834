"""DuckDB connections that parse a statement once: over small drops, parsing takes a quarter of a publication."""

from functools import lru_cache
from typing import Any, Self

import duckdb

_parser = duckdb.connect(config={"threads": 1})


@lru_cache(1000)  # those that name a test's files come once
def _parsed(text: str) -> list[duckdb.Statement]:
    return _parser.cursor().extract_statements(text)


class ParsedOnce:
    """A connection whose statements are parsed the first time that any such connection executes them."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def execute(self, text: str, parameters: object = None) -> Self:
        *before, last = _parsed(text)
        for statement in before:
            self._connection.execute(statement)
        self._connection.execute(last, parameters)
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)
