"""Reads the names and types of the columns of one file."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import duckdb
import msgspec

from warehouse import sql
from warehouse.drops.collection import DropFile
from warehouse.schema.column_types import PARTITION, ColumnType, type_named


class FileColumns(msgspec.Struct):
    """The columns of one file, by lower-case name. Lives while the file is recognised."""

    types: dict[str, tuple[str, ColumnType]] = {}  # with the file's own spelling
    twice: set[str] = set()  # names that differ only in case or spaces
    misread: set[str] = set()  # DuckDB reads them as another type than the file declares


def read_columns(connection: duckdb.DuckDBPyConnection, file: DropFile) -> FileColumns:
    """Returns the columns of a file. Raises duckdb.Error."""
    pattern = sql.pattern(file.path)
    schema = connection.execute(sql.statement("column_types"), [pattern]).fetchall()
    written = {name for name, _, _ in schema}
    described = connection.execute(sql.statement("describe_extract"), [pattern]).fetchall()
    found = FileColumns()
    for (name, read, *_), declared in zip(described, _declared(schema), strict=False):
        # if two names differ only in case, DuckDB describes the second as name_1
        known = (name if name in written else name.rpartition("_")[0]).strip().lower()
        held = type_named(declared or read)
        if known in found.types:
            found.twice.add(known)
        if held.conversions and held != type_named(read):
            found.misread.add(known)
        found.types.setdefault(known, (name, held))
    # a folder named key=value adds a text column that the file itself lacks
    for key in file.partitions:
        found.types.setdefault(key, ("", PARTITION))
    return found


def _declared(schema: Iterable[tuple[str, int, str | None]]) -> Iterator[str | None]:
    """Yields the declared type of each column, without the columns inside it."""
    inside = 0
    for _, children, declared in list(schema)[1:]:  # the first is the table
        if not inside:
            yield declared
        inside = max(0, inside - 1) + children


def encrypted_columns(connection: duckdb.DuckDBPyConnection, path: Path, columns: list[str]) -> list[str]:
    """Returns those of `columns` that are encrypted. pyarrow would end the process if it read them."""
    if not columns or not _is_encrypted(connection, path, columns):
        return []
    return [column for column in columns if _is_encrypted(connection, path, [column])]


def _is_encrypted(connection: duckdb.DuckDBPyConnection, path: Path, columns: list[str]) -> bool:
    quoted = ", ".join('"{}"'.format(column.replace('"', '""')) for column in columns)
    try:
        connection.execute(sql.statement("first_row", columns=quoted), [sql.pattern(path)])
    except duckdb.Error as error:
        return "encrypt" in str(error)  # staging makes the findings on other errors
    return False
