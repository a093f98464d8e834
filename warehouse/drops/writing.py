"""Writes the staged tables of a drop in normalised form, and reads the marks in the footers of its files."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

from warehouse import sql
from warehouse.drops.recognition import Extract
from warehouse.releases.catalog import TableInfo
from warehouse.releases.files import table_file
from warehouse.schema.progress import ProgressCallback
from warehouse.schema.tables import Table

# Keys in Parquet footers. The source of made-up figures marks every file, so that the mark travels with it.
ILLUSTRATIVE_MARK = b"forecast.illustrative"
ATTRIBUTION_MARK = b"forecast.attribution"


def write_tables(
    connection: duckdb.DuckDBPyConnection,
    folder: Path,
    tables: Sequence[Table],
    extracts: Sequence[Extract],
    locations: str,
    progress: ProgressCallback,
) -> dict[str, TableInfo]:
    """Writes staged tables into `folder`. `locations` is the FROM expression for the locations in effect."""
    infos = {}
    for table in tables:
        progress(f"writing {table.name}")
        path = table_file(folder, table.name)
        columns = ", ".join(table.column_names)
        into = sql.quoted(str(path))
        connection.execute(sql.statement(f"write_{table.name}", columns=columns, path=into, locations=locations))
        rows, content = content_of(connection, table, path)
        files = tuple(extract.file.label for extract in extracts if extract.table is table)
        infos[table.name] = TableInfo(rows=rows, checksum=content, files=files)
    return infos


def footer_marks(connection: duckdb.DuckDBPyConnection, extracts: Sequence[Extract]) -> Mapping[bytes, tuple[str, ...]]:
    """Returns the values of each mark in the footers of the files, without repetition."""
    found: dict[bytes, dict[str, None]] = {ILLUSTRATIVE_MARK: {}, ATTRIBUTION_MARK: {}}
    for extract in extracts:
        try:
            rows = connection.execute(sql.statement("footer_marks"), [sql.pattern(extract.file.path)]).fetchall()
        except duckdb.Error:
            continue  # the file vanished or is damaged; staging makes the finding
        for key, value in rows:
            if key in found and value:
                found[key][value.decode(errors="replace")] = None
    return {mark: tuple(values) for mark, values in found.items()}


def content_of(connection: duckdb.DuckDBPyConnection, table: Table, path: Path) -> tuple[int, str]:
    """Returns the number of rows of a table in a release, and a checksum that does not depend on their order."""
    # the length before each value keeps ('ab', 'c') and ('a', 'bc') apart
    values = (f"coalesce(length({name}::VARCHAR) || ':' || {name}::VARCHAR, '-')" for name in table.column_names)
    text = sql.statement("checksum_table", row=f"concat({', '.join(values)})", file=sql.rows_of(path))
    ((rows, content),) = connection.execute(text).fetchall()
    return int(rows), str(content)
