"""Whether the files of a drop belong together."""

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.drops import HOUSING, LOCATIONS, POPULATION, Rows, people, wide_people, write_drop, write_table
from tests.warehouse.helpers import NO_LIMITS, finding
from warehouse.drops.messages import ReadRequest, ReadResult
from warehouse.drops.pipeline import read_drop
from warehouse.schema.findings import Finding, make_report

FIRST, SECOND, THIRD = "36436", "00501", "63101"
YEARS = {"TOT_CENSUS_POP_2010": 1, "TOT_CENSUS_POP_2020": 2, "TOT_FX_POP_2029": 3, "TOT_FX_POP_2030": 4}


def read(drop: Path, out: Path) -> ReadResult:
    out.mkdir()
    result = read_drop(ReadRequest(paths=(str(drop),), out=str(out), before=None, limits=NO_LIMITS))
    assert (result.no_drop, result.failure) == (None, None)
    return result


def found(result: ReadResult, rule: str) -> list[Finding]:
    return [one for one in result.findings if one.rule == rule]


def without(*columns: str) -> dict[str, int]:
    return {name: figure for name, figure in YEARS.items() if name not in columns}


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    """The other tables."""
    return write_drop(tmp_path / "drop", population=None)


def test_parts_that_lack_columns_of_other_parts_are_an_error(drop: Path, tmp_path: Path) -> None:
    """However few ZIP codes they hold."""
    parts = drop / "parts"
    write_table(parts / "part-0.parquet", [wide_people(FIRST, **YEARS), wide_people(SECOND, **YEARS)])
    write_table(parts / "part-1.parquet", [wide_people(THIRD, **without("TOT_FX_POP_2029", "TOT_FX_POP_2030"))])
    reported = finding(make_report(read(drop, tmp_path / "out").findings), "unlike-parts")
    assert (reported.severity, reported.table, reported.file) == ("error", "population", "parts/part-1.parquet")
    assert reported.message == (
        "parts/part-1.parquet lacks columns that other files of population have: tot_fx_pop_2029 and tot_fx_pop_2030"
    )
    assert reported.figures == ("population 2029", "population 2030")
    assert reported.remedy is not None
    assert reported.remedy.endswith("publish with --accept unlike-parts --reason TEXT")


def test_a_year_that_is_counted_in_one_part_and_forecast_in_another_is_an_error(drop: Path, tmp_path: Path) -> None:
    write_table(drop / "a.parquet", [wide_people(FIRST, **YEARS)])
    write_table(drop / "b.parquet", [wide_people(SECOND, **without("TOT_CENSUS_POP_2020"), TOT_FX_POP_2020=2)])
    reported = found(read(drop, tmp_path / "out"), "unlike-parts")
    assert [(one.file, one.column) for one in reported] == [
        ("a.parquet", "tot_fx_pop_2020"),
        ("b.parquet", "tot_census_pop_2020"),
    ]


def test_parts_with_the_same_columns_in_another_order_or_case_belong_together(drop: Path, tmp_path: Path) -> None:
    write_table(drop / "a.parquet", [wide_people(FIRST, **YEARS)])
    backwards = {name.lower(): YEARS[name] for name in reversed(YEARS)}
    write_table(drop / "b.parquet", [wide_people(SECOND, **backwards, exported_by="ada")])
    assert not found(read(drop, tmp_path / "out"), "unlike-parts")


def test_files_may_split_a_table_by_years(drop: Path, tmp_path: Path) -> None:
    """Counted years in one, forecasts in the other, each for all ZIP codes."""
    write_table(drop / "census.parquet", [wide_people(FIRST, TOT_CENSUS_POP_2010=1, TOT_CENSUS_POP_2020=2)])
    write_table(drop / "forecast.parquet", [wide_people(FIRST, TOT_FX_POP_2029=3, TOT_FX_POP_2030=4)])
    assert not found(read(drop, tmp_path / "out"), "unlike-parts")


def test_a_part_without_rows_lacks_no_figure(drop: Path, tmp_path: Path) -> None:
    write_table(drop / "a.parquet", [wide_people(FIRST, **YEARS)])
    empty = write_table(drop / "b.parquet", [wide_people(SECOND, TOT_CENSUS_POP_2010=1)])
    pq.write_table(pq.read_table(empty).slice(0, 0), empty)
    assert not found(read(drop, tmp_path / "out"), "unlike-parts")


@pytest.mark.parametrize("below", ["", "exports/ready"])
def test_a_folder_with_two_drops_is_refused_with_their_names(tmp_path: Path, below: str) -> None:
    """It is the only error, although every row of the second is a duplicate."""
    drops = tmp_path / "drops"
    write_drop(drops / below / "2026-09", aliases=None)
    write_drop(drops / below / "2026-10", population=[*POPULATION, people(FIRST, 2031, 1)])
    result = read(drops, tmp_path / "out")
    (error,) = [one for one in result.findings if one.severity == "error"]
    assert (error.rule, error.message) == ("several-drops", "this holds 2026-09 and 2026-10: name one")
    assert not result.tables


def test_many_drops_are_counted(tmp_path: Path) -> None:
    for number in range(1, 6):
        write_drop(tmp_path / "drops" / f"2026-0{number}", aliases=None)
    (error,) = found(read(tmp_path / "drops", tmp_path / "out"), "several-drops")
    assert error.message == "this holds 2026-01, 2026-02 and 3 more: name one"


def test_an_older_drop_in_a_folder_of_a_drop_is_another_drop(tmp_path: Path) -> None:
    drop = write_drop(tmp_path / "drop")
    write_drop(drop / "old")
    (error,) = found(read(drop, tmp_path / "out"), "several-drops")
    assert error.message == "this holds files of its own and old: name one"


def by_table(drop: Path) -> None:
    write_table(drop / "locations" / "part-0.parquet", LOCATIONS)
    write_table(drop / "population" / "part-0.parquet", POPULATION)
    write_table(drop / "housing" / "part-0.parquet", HOUSING)


def by_state(drop: Path) -> None:
    def of(rows: Rows, at: int) -> Rows:
        return [row for number, row in enumerate(rows) if number % 2 == at]

    for at, state in enumerate(("AL", "NY")):
        tables = {"locations": of(LOCATIONS, at), "population": of(POPULATION, at), "housing": of(HOUSING, at)}
        write_drop(drop / state, **tables, aliases=None)


def by_year(drop: Path) -> None:
    write_drop(drop / "other", population=None)
    for year in (2023, 2024):
        write_table(drop / str(year) / "part-0.parquet", [people(row["zip_code"], year, 1) for row in LOCATIONS])


@pytest.mark.parametrize("split", [by_table, by_state, by_year])
def test_folders_that_split_a_drop_are_one_drop(tmp_path: Path, split: Callable[[Path], None]) -> None:
    split(tmp_path / "drop")
    assert not found(read(tmp_path / "drop", tmp_path / "out"), "several-drops")


def test_a_table_that_is_twice_in_a_drop_makes_it_no_second_drop(tmp_path: Path) -> None:
    """Its rows are duplicates, and the other tables would be missing from either."""
    by_table(tmp_path / "drop")
    write_table(tmp_path / "drop" / "copy" / "part-0.parquet", HOUSING)
    result = read(tmp_path / "drop", tmp_path / "out")
    assert not found(result, "several-drops")
    assert found(result, "duplicate-key")
