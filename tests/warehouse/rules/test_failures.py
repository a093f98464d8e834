"""All failing rows are in a file for each rule, for those who correct them."""

from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from tests.support.drops import HOUSING, alias, homes, location, people, project, wide_people, write_drop, write_table
from warehouse.drops.messages import ReadRequest, ReadResult
from warehouse.drops.pipeline import read_drop
from warehouse.rules import failures
from warehouse.rules.failures import prepare_folder, write_failures
from warehouse.rules.row_rules import ROW_RULES

COLUMNS = ["rule", "table", "file", "row", "key", "column", "value", "cause"]


def read(tmp_path: Path, drop: Path) -> ReadResult:
    (tmp_path / "out").mkdir()
    (tmp_path / "faults").mkdir()
    request = ReadRequest(paths=(str(drop),), out=str(tmp_path / "out"), before=None, failures=str(tmp_path / "faults"))
    return read_drop(request)


def rows(tmp_path: Path, rule: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = pq.read_table(tmp_path / "faults" / f"{rule}.parquet").to_pylist()
    return sorted(listed, key=lambda row: (row["table"] or "", row["row"] or 0))


def test_every_row_is_there_not_five(tmp_path: Path) -> None:
    wrong = [homes(f"{number}") for number in range(1000, 1012)]
    done = read(tmp_path, write_drop(tmp_path / "drop", housing=[*HOUSING, *wrong]))
    found = rows(tmp_path, "unreadable-value")
    assert [row["value"] for row in found] == [row["zip_code"] for row in wrong]
    assert found[0] == {
        "rule": "unreadable-value",
        "table": "housing",
        "file": "zip_housing.parquet",
        "row": 3,
        "key": None,
        "column": "zip_code",
        "value": "1000",
        "cause": "leading zero lost",
    }
    (file,) = done.failures
    assert (file.rule, file.rows, file.cut) == ("unreadable-value", 12, False)
    assert file.path == str(tmp_path / "faults" / "unreadable-value.parquet")


def test_a_figure_of_a_wide_table_names_its_column(tmp_path: Path) -> None:
    drop = write_drop(tmp_path / "drop", population=None)
    write_table(drop / "wide.parquet", [wide_people("36436", TOT_CENSUS_POP_2010=-1, TOT_FX_POP_2030=-2)])
    read(tmp_path, drop)
    found = [(row["column"], row["key"], row["value"]) for row in rows(tmp_path, "out-of-range")]
    assert sorted(found) == [("tot_census_pop_2010", "36436 2010", "-1"), ("tot_fx_pop_2030", "36436 2030", "-2")]


def test_each_rule_on_rows_writes_them(tmp_path: Path) -> None:
    """Of one drop that breaks them all; a rule on whole tables or columns has no rows."""
    drop = write_drop(
        tmp_path / "drop",
        locations=[
            *[location(f"0050{n}", "A\nB", "AL") for n in (1, 2)],
            location("00000", "Stowe, VT", "VT"),
            location("36436", "DoÃ±a Ana", "AX", county_name="nan", latitude=0.0),
        ],
        population=[people("36436", 2020, None), people("3643", 2020, -1), {**people("", 2021, 1), "zip_code": None}],
        housing=[homes("36436", tot_home_available_2020=-1), homes("36436"), homes("99999")],
        aliases=[alias("36436", "Bedford", "AL", "tolerated"), {**alias("36436", "", "AL"), "city_name": None}],
        projects=[
            project("A-1", total_units=-1, status="Plan check"),
            project("A-2", state_code="ND", affordable_units=13),
            project("A-3", zip_code="99999"),
            {**project("A-4"), "zip_code": None, "city_name": None},
        ],
    )
    done = read(tmp_path, drop)
    of_rows = {rule.name for rule in ROW_RULES if rule.offends or rule.faults}
    assert {file.rule for file in done.failures} == of_rows
    for file in done.failures:
        table = pq.read_table(file.path)
        assert table.column_names == COLUMNS
        assert table.num_rows == file.rows > 0
        assert set(table["rule"].to_pylist()) == {file.rule}
        assert None not in table["row"].to_pylist()
    assert [row["key"] for row in rows(tmp_path, "duplicate-key")] == ["36436", "36436"]
    assert [row["value"] for row in rows(tmp_path, "orphan-rows")] == ["99999"]


def test_files_of_an_earlier_run_are_replaced_and_others_stay(tmp_path: Path) -> None:
    (tmp_path / "unreadable-value.parquet").write_bytes(b"old")
    (tmp_path / "notes.txt").write_bytes(b"mine")
    prepare_folder(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_file_is_cut_where_rows_have_no_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And says so."""
    monkeypatch.setattr(failures, "MAX_ROWS", 10)
    with duckdb.connect() as connection:
        for many, cut in ((10, False), (11, True)):
            select = f"SELECT range::VARCHAR AS value FROM range({many})"
            file = write_failures(connection, tmp_path, "odd-name", select)
            assert (file.rows, file.cut) == (10, cut)


def test_another_stage_writes_what_it_knows(tmp_path: Path) -> None:
    """A comparison has ZIP codes and figures, and no rows of files."""
    with duckdb.connect() as connection:
        write_failures(
            connection, tmp_path, "total-drift", "SELECT '36436' AS key, 'housing' AS \"table\", 7 AS before"
        )
    (row,) = pq.read_table(tmp_path / "total-drift.parquet").to_pylist()
    assert (row["rule"], row["table"], row["key"], row["row"], row["before"]) == (
        "total-drift",
        "housing",
        "36436",
        None,
        7,
    )
