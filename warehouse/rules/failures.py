"""Failing rows, as Parquet files: one for each rule, in a folder that the caller names."""

from collections.abc import Sequence
from pathlib import Path

import duckdb
import msgspec

from warehouse import sql
from warehouse.rules.all_rules import RULES

# Keeps a file below about 100 MB, even for a badly broken drop. This many rows usually show the cause.
MAX_ROWS = 1_000_000


class FailureFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of all failing rows. Created when it is written; shown with the outcome."""

    rule: str
    path: str  # absolute
    rows: int
    cut: bool = False  # the file lacks the rows beyond `MAX_ROWS`


def prepare_folder(folder: Path) -> None:
    """Makes `folder` and removes the files of an earlier run: those named after a rule. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in RULES:
        _file(folder, name).unlink(missing_ok=True)


def write_failures(
    connection: duckdb.DuckDBPyConnection, folder: Path, rule: str, select: str | Sequence[str]
) -> FailureFile:
    """Writes the rows of `select` to ``<folder>/<rule>.parquet``. Several statements go into one file.

    The file has the text columns rule, table, file, key, column, value and cause, and the whole number row. A statement
    need not have all of them. Its other columns come last: state, old and new for plausibility rules.
    `folder` must exist (`prepare_folder`).

    Raises:
        duckdb.Error: if the rows cannot be read or written.
    """
    selects = [select] if isinstance(select, str) else select
    path = _file(folder, rule)
    rows = " UNION ALL BY NAME ".join(f"(FROM ({one}))" for one in selects)
    text = sql.statement("write_failures", rule=rule, rows=rows, most=str(MAX_ROWS), path=sql.quoted(str(path)))
    ((written,),) = connection.execute(text).fetchall()
    more = sql.statement("failures_beyond", rows=rows, most=str(MAX_ROWS))
    cut = written >= MAX_ROWS and bool(connection.execute(more).fetchall())
    return FailureFile(rule=rule, path=str(path.absolute()), rows=written, cut=cut)


def _file(folder: Path, rule: str) -> Path:
    return folder / f"{rule}.parquet"
