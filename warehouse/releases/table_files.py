"""The tables of a release, as files."""

from pathlib import Path

import duckdb

from warehouse import sql
from warehouse.schema.tables import Table


def table_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.parquet"


def content_of(connection: duckdb.DuckDBPyConnection, table: Table, path: Path) -> tuple[int, str]:
    """Rows and content checksum of a table of a release."""
    # with its length before each value, no value can pass for the end of one and the beginning of the next
    values = (f"coalesce(length({name}::VARCHAR) || ':' || {name}::VARCHAR, '-')" for name in table.column_names)
    text = sql.statement("checksum_table", row=" || ".join(values), file=sql.rows_of(path))
    ((rows, content),) = connection.execute(text).fetchall()
    return int(rows), str(content)
