"""City aliases. Areas use them if no city has the name."""

from pathlib import Path

import duckdb

from warehouse import sql


def acceptable_aliases(connection: duckdb.DuckDBPyConnection, tables: Path) -> list[tuple[str, str, str]]:
    """ZIP code, name and state of the aliases that the postal service accepts. Empty if the release has no aliases."""
    file = tables / "aliases.parquet"
    if not file.exists():
        return []
    return connection.execute(sql.statement("acceptable_aliases", file=sql.rows_of(file))).fetchall()
