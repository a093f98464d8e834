"""The `DataArea` type. registry.py lists the areas; building and serving use no area by name."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import msgspec

from warehouse import sql
from warehouse.areas.paging import Cursors
from warehouse.lookup.query import LookupStatement
from warehouse.places.keyset import KeySet

# Up to this many keys get one placeholder each. Measured against one list parameter: a third less time for one key, a
# fifth less for 16 to 32, a twelfth less for 48, but almost twice the time for a city of 178 neighbouring ZIP codes.
_MAX_LISTED_KEYS = 32
_ANY_NUMBER = "SELECT unnest(?::VARCHAR[])"

# connection, folder of the normalised tables, folder of the release
BuildArea = Callable[[duckdb.DuckDBPyConnection, Path, Path], KeySet]
# connection that has just built the area, folder of the normalised tables
Flatten = Callable[[duckdb.DuckDBPyConnection, Path], None]
# folder of the release, cursors; yields canonical query and encoded body
AnswersToWarm = Callable[[Path, Cursors], Iterator[tuple[str, bytes]]]


class FurtherLookup(msgspec.Struct, frozen=True):
    """Another SQL statement that answers from an area's `entries`. Its `probe` parameters find no rows."""

    name: str
    probe: tuple[Any, ...]


class DataArea(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of data with its own endpoint. Declared in the area's module, constant."""

    name: str  # in manifests, cache keys, metrics and file names
    tables: tuple[str, ...]  # a release that lacks one of them lacks the area
    lookup: str  # name of the SQL statement that answers from `entries`
    probe: tuple[Any, ...]  # parameters with which it finds no rows
    further_lookups: tuple[FurtherLookup, ...] = ()
    by_key: bool = False  # the statement takes `{keys}`, and finds keys and entries
    build: BuildArea  # writes `entries`, and returns the key set
    record: str  # the column of `entries`, and of the flat rows, that identifies a record
    flatten: Flatten  # creates the temporary table `flat_records`, a row for each record
    answers_to_warm: AnswersToWarm  # answers worth caching in advance, with the cursors that servers make

    @property
    def entries(self) -> str:
        """Name of the serving file."""
        return f"{self.name}.parquet"

    @property
    def key_set(self) -> str:
        """Name of the key set's file."""
        return f"{self.name}.keys"

    @property
    def files(self) -> tuple[str, str]:
        """Names of all files of the area in a release."""
        return self.entries, self.key_set

    def lookups_in(self, folder: Path) -> dict[str, LookupStatement]:
        """Returns all look-ups for the release in `folder`: `lookup_in` by the area's name, the others by their own."""
        file = sql.rows_of(folder / self.entries)
        further = {
            one.name: LookupStatement(sql.statement(one.name, file=file), one.probe) for one in self.further_lookups
        }
        return {self.name: self.lookup_in(folder), **further}

    def lookup_in(self, folder: Path) -> LookupStatement:
        """Returns the look-up for the release in `folder`."""
        file = sql.rows_of(folder / self.entries)
        if not self.by_key:
            return LookupStatement(sql.statement(self.lookup, file=file), self.probe)
        load = sql.statement("load_entries", area=self.name, key=self.record, file=file)
        loaded = self._by_key(f"{self.name}.entries")
        return msgspec.structs.replace(self._by_key(file), load=load, loaded=loaded)

    def _by_key(self, rows: str) -> LookupStatement:
        """Returns the look-up in `rows`, a FROM expression."""
        lists = (", ".join("?" * count) for count in range(1, _MAX_LISTED_KEYS + 1))
        few = tuple(sql.statement(self.lookup, file=rows, keys=keys) for keys in lists)
        return LookupStatement(sql.statement(self.lookup, file=rows, keys=_ANY_NUMBER), self.probe, few)

    def keys_in(self, folder: Path) -> KeySet:
        """Returns the key set of the release in `folder`. Raises OSError or msgspec.DecodeError if that fails."""
        return KeySet.decoded((folder / self.key_set).read_bytes())


def acceptable_aliases(connection: duckdb.DuckDBPyConnection, tables: Path) -> list[tuple[str, str, str]]:
    """Returns ZIP code, name and state of aliases that the postal service accepts. Empty without a table of aliases."""
    file = tables / "aliases.parquet"
    if not file.exists():
        return []
    return connection.execute(sql.statement("acceptable_aliases", file=sql.rows_of(file))).fetchall()
