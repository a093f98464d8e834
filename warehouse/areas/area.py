"""What a data area is to the warehouse. Areas are listed in all.py; building and serving know none by name."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import msgspec

from warehouse import sql
from warehouse.keyset import KeySet

Build = Callable[[duckdb.DuckDBPyConnection, Path, Path], KeySet]
Answers = Callable[[Path], Iterator[tuple[str, bytes]]]


class Area(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of data. `name` is its name in manifests, cache keys and metrics, and that of its files.

    `tables`: a release that lacks one of them lacks the area.
    `lookup`: the statement that answers from `entries`; with the parameters `probe` it finds nothing.
    `build`: writes `entries` from the normalised tables of a release (connection, their folder, the release's folder).
    `answers`: what is worth putting into a cache before anybody asks, as (canonical query, encoded body).
    """

    name: str
    tables: tuple[str, ...]
    lookup: str
    probe: tuple[Any, ...]
    build: Build
    answers: Answers

    @property
    def entries(self) -> str:
        """The serving file."""
        return f"{self.name}.parquet"

    @property
    def key_set(self) -> str:
        """The file of the key set."""
        return f"{self.name}.keys"

    @property
    def files(self) -> tuple[str, str]:
        return self.entries, self.key_set

    def lookup_in(self, folder: Path) -> str:
        """The look-up's SQL on the release in `folder`."""
        return sql.statement(self.lookup, file=sql.rows_of(folder / self.entries))

    def keys_in(self, folder: Path) -> KeySet:
        """Raises OSError or msgspec.DecodeError if there is no readable key set."""
        return KeySet.decoded((folder / self.key_set).read_bytes())
