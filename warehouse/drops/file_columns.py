"""Reads the names and types of the columns of one file, and recognises our names in other spellings."""

import os
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import duckdb
import msgspec

from config.text import BYTE_ORDER_MARK, MARK_READ_AS_LATIN_1
from warehouse import sql
from warehouse.drops.collection import DropFile
from warehouse.schema.column_types import PARTITION, ColumnType, type_named
from warehouse.schema.tables import MONTH_CODE, TABLES, UPDATED_AT

KNOWN_COLUMNS = {name for table in TABLES for name in table.column_names}
# Without the separators of words.
_BY_LETTERS = {name.replace("_", ""): name for name in (*KNOWN_COLUMNS, UPDATED_AT, MONTH_CODE)}
_YEAR_BY_LETTERS = re.compile(r"tot(census|fx)pop([0-9]{4})")
_IN_FRONT = re.compile(r".*[.:/$|](?=.)")  # such as schema.table.column
_ADDED = re.compile(r"""ï»¿|[\ufeff\u200b-\u200f\u2060"'`]""")


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


def respelled(names: Collection[str]) -> dict[str, str]:
    """Returns our name of each column that has another spelling of it, by the column's own lower-case name."""
    shared = os.path.commonprefix(list(names)) if len(names) > 1 else ""  # noqa: RUF071 - names, not paths
    ours = {name: _our_name(name.removeprefix(shared[: shared.rfind("_") + 1])) for name in names}
    return {name: our for name, our in ours.items() if our is not None and our not in names}


def _our_name(name: str) -> str | None:
    letters = re.sub(r"[^a-z0-9]", "", _IN_FRONT.sub("", name))
    year = _YEAR_BY_LETTERS.fullmatch(letters)
    return f"tot_{year[1]}_pop_{year[2]}" if year else _BY_LETTERS.get(letters)


def cause_of(names: Collection[str]) -> tuple[str, str]:
    """Returns the likely cause of these spellings, and its remedy without the names."""
    if any(name.startswith((BYTE_ORDER_MARK, MARK_READ_AS_LATIN_1)) for name in names):
        return "byte-order mark", "export as UTF-8 without a byte-order mark"
    if any(_ADDED.search(name) for name in names):
        return "quotation marks or invisible characters", "export names without them"
    if any(_IN_FRONT.match(name) for name in names):
        return "the name of a table in front", "export names without it"
    return "another spelling", "export the names of the contract"
