"""The DuckDB connection that reads, compares and builds a drop, within limits of memory and disk."""

from pathlib import Path

import duckdb

from config.resources import processors
from warehouse import sql
from warehouse.drops.disk_budget import DiskBudget
from warehouse.sql import connections

_MEMORY_BYTES = 512 << 20  # DuckDB's own limit


def connect_within(budget: DiskBudget, folder: Path) -> duckdb.DuckDBPyConnection:
    """A new in-memory database that spills into `folder`, at most as much as `budget` allows."""
    connection = connections.connect()
    connection.execute(
        sql.statement(
            "limit_publisher",
            memory=str(_MEMORY_BYTES),
            spill=str(budget.spill_limit),
            threads=str(processors()),
            folder=sql.quoted(str(folder)),
        )
    )
    return connection
