"""The normalised tables of a release, as files."""

from pathlib import Path

import duckdb

from warehouse import sql
from warehouse.schema.tables import Table


def table_file(folder: Path, name: str) -> Path:
    """Returns the file of table `name` in the tables folder `folder`."""
    return folder / f"{name}.parquet"


def content_of(connection: duckdb.DuckDBPyConnection, table: Table, path: Path) -> tuple[int, str]:
    """Returns the number of rows of a table in a release, and a checksum that does not depend on their order."""
    # the length before each value keeps ('ab', 'c') and ('a', 'bc') apart
    values = (f"coalesce(length({name}::VARCHAR) || ':' || {name}::VARCHAR, '-')" for name in table.column_names)
    text = sql.statement("checksum_table", row=f"concat({', '.join(values)})", file=sql.rows_of(path))
    ((rows, content),) = connection.execute(text).fetchall()
    return int(rows), str(content)
