"""Files, parts, folders and shapes: every value arrives in the row and column where it belongs."""

from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.drops import LOCATIONS, POPULATION, location, people, wide_people, write_table
from tests.warehouse.helpers import errors, examine, finding


def test_a_part_whose_text_lost_its_zeros_is_an_error_beside_a_right_one(tmp_path: Path) -> None:
    write_table(tmp_path / "part-0.parquet", [people(501, 2022, 1)], {"zip_code": pa.int32()})  # type: ignore[arg-type]
    write_table(tmp_path / "part-1.parquet", [people("501", 2023, 2)])
    found = finding(examine(tmp_path).report, "unreadable-value")
    assert (found.file, found.samples) == ("part-1.parquet", ("row 1 2023 has 501",))


@pytest.mark.parametrize(
    "kind", [pa.null(), pa.int32(), pa.float64(), pa.bool_(), pa.list_(pa.int32()), pa.struct({"a": pa.int8()})]
)
def test_a_column_without_a_value_may_have_any_type(tmp_path: Path, kind: pa.DataType) -> None:
    """Writers guess the type of a column of NULLs; the parts beside it have the right one."""
    write_table(tmp_path / "part-0.parquet", LOCATIONS)
    empty = {"county_name": None, "latitude": None}
    row = location("36437", "Jackson", "AL", **empty)
    write_table(tmp_path / "part-1.parquet", [row], {"county_name": kind, "latitude": kind})
    found = examine(tmp_path)
    assert ("36437", None, None) in found.rows("locations", "zip_code", "county_name", "latitude")
    assert not errors(found.report)


def test_a_zip_code_in_a_folder_name_keeps_its_zeros(tmp_path: Path) -> None:
    write_table(tmp_path / "zip_code=00501" / "part-0.parquet", [{"year": 2023, "tot_population": 1}])
    assert examine(tmp_path).values("population", "zip_code") == ["00501"]


def test_a_folder_of_null_is_a_missing_value(tmp_path: Path) -> None:
    rows = [{"zip_code": "00501", "tot_population": 1}]
    write_table(tmp_path / "year=__HIVE_DEFAULT_PARTITION__" / "part-0.parquet", rows)
    assert finding(examine(tmp_path).report, "missing-value").column == "year"


def test_the_column_of_a_file_wins_over_a_folder_of_its_name(tmp_path: Path) -> None:
    """What key=value folders there are above, or in, a drop must never overwrite what was exported."""
    write_table(tmp_path / "zip_code=99999" / "a.parquet", [people("36436", 2023, 783)])
    assert examine(tmp_path).values("population", "zip_code") == ["36436"]


@pytest.mark.parametrize(
    "name", ["it's", "a*b", "a?b", "a[b]c", "[", "two words", "größe–é", '"quoted"', "semi;colon", "{x}"]
)
def test_drops_may_have_any_name(tmp_path: Path, name: str) -> None:
    """Nothing in a path is a pattern, a quote or a placeholder; a sibling that a pattern would hit is not read."""
    write_table(tmp_path / name / f"{name}.parquet", [people("36436", 2023, 783)])
    write_table(tmp_path / "axb" / "axb.parquet", [people("90028", 2023, 1)])
    found = examine(tmp_path / name)
    assert found.values("population", "zip_code") == ["36436"]
    assert found.values("population", "_file") == [f"{name}.parquet"]


def test_empty_cells_of_the_wide_shape_are_years_without_a_figure(tmp_path: Path) -> None:
    rows = [
        wide_people("36436", TOT_CENSUS_POP_2010=None, TOT_CENSUS_POP_2011=5),
        wide_people("90028", TOT_CENSUS_POP_2010=0, TOT_CENSUS_POP_2011=None),
    ]
    write_table(tmp_path / "a.parquet", rows)
    found = examine(tmp_path)
    assert found.rows("population", "zip_code", "year", "tot_population") == [("36436", 2011, 5), ("90028", 2010, 0)]
    assert not found.report.count("warning")


def test_blank_cells_of_the_wide_shape_are_empty_ones(tmp_path: Path) -> None:
    rows = [wide_people("36436", TOT_CENSUS_POP_2010="", TOT_CENSUS_POP_2011="5")]
    text = {"TOT_CENSUS_POP_2010": pa.string(), "TOT_CENSUS_POP_2011": pa.string()}
    write_table(tmp_path / "a.parquet", rows, text)
    found = examine(tmp_path)
    assert found.rows("population", "year", "tot_population") == [(2011, 5)]
    assert not found.report.count("warning")


def test_an_unreadable_cell_of_the_wide_shape_names_its_column(tmp_path: Path) -> None:
    rows = [wide_people("36436", TOT_CENSUS_POP_2010=1.0, TOT_FX_POP_2030=1.5)]
    floats = {"TOT_CENSUS_POP_2010": pa.float64(), "TOT_FX_POP_2030": pa.float64()}
    write_table(tmp_path / "a.parquet", rows, floats)
    assert finding(examine(tmp_path).report, "unreadable-value").samples == (
        "row 1 36436 2030 has 1.5 in tot_fx_pop_2030",
    )


def test_a_column_named_as_the_reader_numbers_rows_does_no_harm(tmp_path: Path) -> None:
    write_table(tmp_path / "a.parquet", [{**row, "file_row_number": "7"} for row in POPULATION])
    found = examine(tmp_path)
    assert len(found.rows("population", "zip_code")) == len(POPULATION)
    assert not errors(found.report)
