"""What a data area is to the warehouse. Areas are listed in registry.py; building and serving know none by name."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import msgspec

from warehouse import sql
from warehouse.areas.paging import Cursors
from warehouse.lookup.lookup_statement import LookupStatement
from warehouse.places.keyset import KeySet

# Measured: a list of keys saves a third of the time for one, a fifth for 16 to 32, a twelfth for 48; for a city of 178
# whose ZIP codes are neighbours it takes almost twice as long.
_FEW = 32
_ANY_NUMBER = "SELECT unnest(?::VARCHAR[])"

BuildArea = Callable[[duckdb.DuckDBPyConnection, Path, Path], KeySet]
AnswersToWarm = Callable[[Path, Cursors], Iterator[tuple[str, bytes]]]


class DataArea(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of data. `name` is its name in manifests, cache keys and metrics, and that of its files.

    `tables`: a release that lacks one of them lacks the area.
    `lookup`: the statement that answers from `entries`; with the parameters `probe` it finds nothing. One that is
    `by_key` finds keys and entries, and its text names `{keys}`.
    `build`: writes `entries` from the normalised tables of a release (connection, their folder, the release's folder).
    `answers_to_warm`: what is worth putting into a cache before anybody asks, as (canonical query, encoded body); of
    the release's folder, with cursors as those who serve it make them.
    """

    name: str
    tables: tuple[str, ...]
    lookup: str
    probe: tuple[Any, ...]
    by_key: bool = False
    build: BuildArea
    answers_to_warm: AnswersToWarm

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

    def lookup_in(self, folder: Path) -> LookupStatement:
        """The look-up on the release in `folder`."""
        file = sql.rows_of(folder / self.entries)
        lists = [", ".join("?" * count) for count in range(1, _FEW + 1)] if self.by_key else []
        few = tuple(sql.statement(self.lookup, file=file, keys=keys) for keys in lists)
        return LookupStatement(sql.statement(self.lookup, file=file, keys=_ANY_NUMBER), self.probe, few)

    def keys_in(self, folder: Path) -> KeySet:
        """Raises OSError or msgspec.DecodeError if there is no readable key set."""
        return KeySet.decoded((folder / self.key_set).read_bytes())
