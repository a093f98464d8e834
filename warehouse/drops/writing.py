"""Writes the staged tables of a drop in our own form, and reads what its files say about themselves."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

from warehouse import sql
from warehouse.drops.recognition import Extract
from warehouse.releases.catalog import TableInfo
from warehouse.releases.table_files import content_of, table_file
from warehouse.schema.progress import ProgressCallback
from warehouse.schema.tables import Table

# Written by whoever makes up figures, into the Parquet footer of every file, so that the mark travels with them.
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
    """Writes staged tables into `folder`; `locations` is the SQL that those in effect are read from."""
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
    """What the files say about themselves in their footers, by mark, each value once."""
    found: dict[bytes, dict[str, None]] = {ILLUSTRATIVE_MARK: {}, ATTRIBUTION_MARK: {}}
    for extract in extracts:
        try:
            rows = connection.execute(sql.statement("footer_marks"), [sql.pattern(extract.file.path)]).fetchall()
        except duckdb.Error:
            continue  # it went away, or broke: whoever reads its rows says so
        for key, value in rows:
            if key in found and value:
                found[key][value.decode(errors="replace")] = None
    return {mark: tuple(values) for mark, values in found.items()}
