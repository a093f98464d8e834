"""City aliases. Areas use them for names that are not cities."""

from pathlib import Path

import duckdb

from warehouse import sql


def acceptable_aliases(connection: duckdb.DuckDBPyConnection, tables: Path) -> list[tuple[str, str, str]]:
    """Returns ZIP code, name and state of aliases that the postal service accepts. Empty without a table of aliases."""
    file = tables / "aliases.parquet"
    if not file.exists():
        return []
    return connection.execute(sql.statement("acceptable_aliases", file=sql.rows_of(file))).fetchall()
