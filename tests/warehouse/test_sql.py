"""Every statement has a name, a description and a body."""

from pathlib import Path

import duckdb
import pytest

from tests.support.drops import HOUSING, write_table
from warehouse import sql
from warehouse.rules.plausibility_rules import FIGURE_RULES, PLACE_RULES
from warehouse.rules.row_rules import ROW_RULES as RULES
from warehouse.schema.tables import TABLES


def test_every_statement_is_described() -> None:
    """One sentence at least: it is what somebody reads beside a slow query."""
    for statement in sql.statements().values():
        assert statement.description.endswith("."), statement.name
        assert statement.text


def test_every_statement_is_asked_for() -> None:
    code = "\n".join(path.read_text() for path in Path(sql.__file__).parent.parent.rglob("*.py"))
    used = (
        {name for rule in RULES for name in rule.statements}
        | {rule.query for rule in (*PLACE_RULES, *FIGURE_RULES)}
        | {f"{word}_{table.name}" for word in ("write", "servable") for table in TABLES}
    )
    assert [name for name in sql.statements() if name not in used and f'"{name}"' not in code] == []


def test_placeholders_are_filled_and_other_braces_left() -> None:
    parts = {"staged": "t", "columns": "a INTEGER"}
    assert sql.statement("create_staged", **parts) == "CREATE OR REPLACE TEMP TABLE t (a INTEGER)"
    assert "[0-9]{5}" in sql.statement("conversions", longest="9")


def test_what_is_filled_in_is_not_read_as_a_placeholder() -> None:
    assert sql.statement("count_rows", rows="{columns}") == "SELECT count(*) FROM {columns}"


def test_a_forgotten_placeholder_is_an_error() -> None:
    with pytest.raises(KeyError, match="columns"):
        sql.statement("create_staged", staged="t")
    with pytest.raises(KeyError):
        sql.statement("create_staged")


def test_an_unknown_statement_is_an_error() -> None:
    with pytest.raises(KeyError, match="no_such"):
        sql.statement("no_such")


def test_a_file_of_statements_is_parsed() -> None:
    one = "-- name: one\n-- The first.\n-- It is short.\n-- rule: a b=1\nSELECT 1\n"
    text = f"{one}\n-- name: two\n-- The second.\nSELECT '--2'\n"
    assert sql.parse_statements(text, "x.sql") == [
        sql.Statement("one", "x.sql", "The first. It is short.", {"rule": "a b=1"}, "SELECT 1"),
        sql.Statement("two", "x.sql", "The second.", {}, "SELECT '--2'"),
    ]


@pytest.mark.parametrize("text", ["-- name: one\nSELECT 1", "-- name: one\n-- Nothing follows."])
def test_a_statement_without_description_or_body_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"x\.sql: statement one lacks"):
        sql.parse_statements(text, "x.sql")


@pytest.mark.parametrize(
    "name", ["a.parquet", "it's.parquet", "a*b?.parquet", "a[b].parquet", "[[.parquet", "back\\slash"]
)
def test_one_file_is_read_whatever_its_name(tmp_path: Path, name: str) -> None:
    write_table(tmp_path / name, HOUSING)
    write_table(tmp_path / "b", HOUSING)
    rows = duckdb.connect().execute(f"SELECT count(*) FROM {sql.rows_of(tmp_path / name)}").fetchall()
    assert rows == [(len(HOUSING),)]
