"""Which table a file is, by its columns."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.drops import (
    ALIASES,
    HOUSING,
    LOCATIONS,
    POPULATION,
    WIDE_POPULATION,
    Rows,
    location,
    project,
    upper,
    wide_people,
    write_drop,
    write_table,
    write_wide_drop,
)
from tests.warehouse.helpers import connect, errors, examine, finding
from warehouse.drops.collection import collect
from warehouse.drops.recognition import Recognised, recognise
from warehouse.schema.findings import make_report


def recognised(path: Path) -> Recognised:
    return recognise(connect(), collect([str(path)]))


def tables(path: Path) -> dict[str, str]:
    return {extract.file.label: extract.table.name for extract in recognised(path).extracts}


def without(rows: Rows, *names: str) -> Rows:
    return [{name: value for name, value in row.items() if name not in names} for row in rows]


def beside(rows: Rows, extra: dict[str, Any]) -> Rows:
    return [{**row, **extra} for row in rows]


def test_every_table_of_the_long_shape_is_recognised(tmp_path: Path) -> None:
    assert tables(write_drop(tmp_path, projects=[project("A-1")])) == {
        "zip_locations.parquet": "locations",
        "zip_population.parquet": "population",
        "zip_housing.parquet": "housing",
        "zip_city_aliases.parquet": "aliases",
        "development_projects.parquet": "development_projects",
    }


def test_every_table_of_the_wide_shape_is_recognised(tmp_path: Path) -> None:
    found = recognised(write_wide_drop(tmp_path))
    assert {extract.file.label: (extract.table.name, extract.shape) for extract in found.extracts} == {
        "US_HOUSING_FORECAST.parquet": ("housing", "long"),
        "US_POPULATION_FORECAST_BY_ZIP_CODE.parquet": ("population", "wide"),
        "ZIP_CITY_ALIASES.parquet": ("aliases", "long"),
        "ZIP_MASTER_TABLE.parquet": ("locations", "long"),
    }


@pytest.mark.parametrize("rows", [HOUSING, POPULATION, upper(POPULATION), WIDE_POPULATION])
def test_figures_with_all_the_columns_of_a_location_are_still_figures(tmp_path: Path, rows: Rows) -> None:
    """Exports carry locations along; taken for one, it would replace the real locations."""
    described = location("36436", "Dickinson", "AL")
    have = {name.lower() for name in rows[0]}
    write_table(tmp_path / "a.parquet", beside(rows, {k: v for k, v in described.items() if k not in have}))
    assert set(tables(tmp_path).values()) <= {"housing", "population"} != set()


def test_figures_with_location_columns_but_a_figure_missing_are_no_locations(tmp_path: Path) -> None:
    described = location("36436", "Dickinson", "AL")
    rows = without(beside(HOUSING, described), "tot_home_available_2021")
    write_table(tmp_path / "a.parquet", rows)
    found = finding(make_report(list(recognised(tmp_path).findings)), "missing-figure")
    assert (found.table, found.file, found.column) == ("housing", "a.parquet", "tot_home_available_2021")


def test_locations_with_a_postal_status_are_still_locations(tmp_path: Path) -> None:
    write_table(tmp_path / "a.parquet", beside(LOCATIONS, {"usps_status": "primary"}))
    assert tables(tmp_path) == {"a.parquet": "locations"}


@pytest.mark.parametrize(
    ("rows", "table", "column"),
    [
        (LOCATIONS, "locations", "latitude"),
        (POPULATION, "population", "zip_code"),
        (WIDE_POPULATION, "population", "ZIP_CODE"),
        (HOUSING, "housing", "zip_code"),
        (ALIASES, "aliases", "state_code"),
        ([project("A-1")], "development_projects", "total_units"),
    ],
)
def test_a_missing_column_is_an_error_that_names_it(tmp_path: Path, rows: Rows, table: str, column: str) -> None:
    write_table(tmp_path / "a.parquet", without(rows, column))
    found = finding(make_report(list(recognised(tmp_path).findings)), "missing-column")
    assert (found.severity, found.table, found.file) == ("error", table, "a.parquet")
    assert found.column == column.lower()


def test_a_missing_housing_figure_is_an_error_of_its_own(tmp_path: Path) -> None:
    """The rest of the file is read, so that everything else that is wrong is reported as well."""
    write_table(tmp_path / "a.parquet", without(HOUSING, "est_total_home_demand_2030"))
    found = recognised(tmp_path)
    missing = finding(make_report(list(found.findings)), "missing-figure")
    assert (missing.severity, missing.table, missing.column) == ("error", "housing", "est_total_home_demand_2030")
    assert [extract.table.name for extract in found.extracts] == ["housing"]


def test_a_housing_year_that_answers_do_not_name_is_reported(tmp_path: Path) -> None:
    write_table(tmp_path / "a.parquet", beside(HOUSING, {"tot_home_available_2024": "5", "exported_by": "x"}))
    found = make_report(list(recognised(tmp_path).findings))
    assert "tot_home_available_2024" in finding(found, "not-in-v1").message
    assert "tot_home_available_2024" not in finding(found, "ignored-column").message


@pytest.mark.parametrize(
    ("row", "fits"),
    [
        ({"foo": "1", "bar": "a"}, "none of its columns fits any"),
        ({"zip_code": "36436", "rain": "1"}, "only its column zip_code"),
    ],
)
def test_a_file_of_other_columns_is_to_be_removed(tmp_path: Path, row: dict[str, object], fits: str) -> None:
    """What it lacks of a table that nobody meant helps nobody, and no table is broken because of it."""
    write_table(tmp_path / "a.parquet", [row])
    found = finding(make_report(list(recognised(tmp_path).findings)), "unrecognised-file")
    assert found.message.startswith(f"a.parquet matches no table: {fits}")
    assert (found.table, (found.remedy or "").split(",")[0]) == (None, "remove the file from the drop")


def test_a_misspelt_column_is_an_error_that_names_the_nearest(tmp_path: Path) -> None:
    rows = [{("zip_cod" if name == "zip_code" else name): value for name, value in row.items()} for row in HOUSING]
    write_table(tmp_path / "a.parquet", rows)
    found = finding(make_report(list(recognised(tmp_path).findings)), "missing-column")
    assert "zip_code: is it zip_cod?" in (found.remedy or "")


SPELLINGS: dict[str, Callable[[str], str]] = {
    "table in front": lambda name: f"US_HOUSING_FORECAST.{name}",
    "schema and table in front": lambda name: f"prod.us_housing_forecast.{name}",
    "brackets": lambda name: f"[dbo].[{name}]",
    "prefix": lambda name: f"h_{name}",
    "spaces": lambda name: name.replace("_", " "),
    "hyphens": lambda name: name.replace("_", "-"),
    "two underscores": lambda name: f"__{name.replace('_', '__')}",
    "no separators": lambda name: name.replace("_", ""),
    "camel case": lambda name: name[0] + name.title().replace("_", "")[1:],
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(
    ("rows", "table"), [(HOUSING, "housing"), (WIDE_POPULATION, "population"), (LOCATIONS, "locations")]
)
def test_columns_in_another_spelling_are_named_by_ours(tmp_path: Path, spelling: str, rows: Rows, table: str) -> None:
    """Not by those of the table that happens to be nearest."""
    spell = SPELLINGS[spelling]
    write_table(tmp_path / "a.parquet", rows)
    read = pq.read_table(tmp_path / "a.parquet")
    pq.write_table(read.rename_columns([spell(name) for name in read.column_names]), tmp_path / "a.parquet")
    found = recognised(tmp_path)
    only = finding(make_report(list(found.findings)), "missing-column")
    assert (only.severity, only.table, found.extracts) == ("error", table, ())
    assert f": {read.column_names[0].lower()} instead of {spell(read.column_names[0])}" in (only.remedy or "")


def test_a_column_in_another_spelling_and_one_that_is_missing_are_both_named(tmp_path: Path) -> None:
    rows = [{("ZIP CODE" if name == "zip_code" else name): value for name, value in row.items()} for row in LOCATIONS]
    write_table(tmp_path / "a.parquet", without(rows, "latitude"))
    found = finding(make_report(list(recognised(tmp_path).findings)), "missing-column")
    assert (found.table, found.count) == ("locations", 2)
    assert "columns zip_code, latitude cannot be found" in found.message


def test_an_unneeded_column_may_resemble_one_of_ours(tmp_path: Path) -> None:
    write_table(tmp_path / "a.parquet", beside(HOUSING, {"ZIP CODE": "90028", "h.zip_code": "1", "city name": "x"}))
    assert tables(tmp_path) == {"a.parquet": "housing"}


def test_a_file_that_is_no_table_is_an_error_that_names_the_nearest(tmp_path: Path) -> None:
    write_table(tmp_path / "a.parquet", [{"zip_code": "36436", "city_name": "Dickinson", "colour": "red"}])
    found = finding(make_report(list(recognised(tmp_path).findings)), "unrecognised-file")
    assert (found.severity, found.file, found.table) == ("error", "a.parquet", "aliases")
    assert "has colour" in found.samples


def test_a_file_without_column_names_says_how_to_unload_them(tmp_path: Path) -> None:
    """In a key=value folder too, whose column has a name."""
    write_table(tmp_path / "year=2023" / "a.parquet", [{"_COL_0": "36436", "_COL_1": "Dickinson"}])
    found = finding(make_report(list(recognised(tmp_path).findings)), "unrecognised-file")
    assert "HEADER = TRUE" in (found.remedy or "")


def test_unneeded_columns_are_ignored_and_named(tmp_path: Path) -> None:
    write_table(tmp_path / "a.parquet", beside(HOUSING, {"exported_by": "ada", "RT_GROWTH": "x"}))
    found = recognised(tmp_path)
    assert [extract.table.name for extract in found.extracts] == ["housing"]
    note = finding(make_report(list(found.findings)), "ignored-column")
    assert (note.severity, note.count, note.file) == ("info", 2, "a.parquet")
    assert "exported_by, rt_growth" in note.message


@pytest.mark.parametrize("twin", ["ZIP_CODE", " zip_code "])
def test_a_needed_column_that_is_there_twice_is_an_error(tmp_path: Path, twin: str) -> None:
    """It cannot be known which of the two is right."""
    table = pa.table({"zip_code": ["36436"], twin: ["90028"], "year": [2023], "tot_population": [5]})
    pq.write_table(table, tmp_path / "a.parquet")
    found = finding(make_report(list(recognised(tmp_path).findings)), "ambiguous-column")
    assert (found.severity, found.file, found.column) == ("error", "a.parquet", "zip_code")


def test_an_ignored_column_may_be_there_twice(tmp_path: Path) -> None:
    table = pa.table({"zip_code": ["36436"], "year": [2023], "tot_population": [5], "note": ["a"], "NOTE": ["b"]})
    pq.write_table(table, tmp_path / "a.parquet")
    assert tables(tmp_path) == {"a.parquet": "population"}


def test_a_year_in_both_takes_what_was_counted_and_is_reported(tmp_path: Path) -> None:
    """Whatever the order of the columns."""
    row = wide_people("36436", TOT_FX_POP_2024=2, TOT_CENSUS_POP_2024=1, TOT_FX_POP_2025=3)
    write_table(tmp_path / "a.parquet", [row])
    found = examine(tmp_path)
    assert found.rows("population", "year", "tot_population") == [(2024, 1), (2025, 3)]
    warning = finding(found.report, "year-in-both")
    assert (warning.severity, warning.count, warning.samples) == ("warning", 1, ("tot_fx_pop_2024",))


def test_a_file_of_both_shapes_is_read_in_the_long_one(tmp_path: Path) -> None:
    write_table(tmp_path / "a.parquet", beside(POPULATION[:1], {"TOT_CENSUS_POP_2011": 4}))
    assert examine(tmp_path).rows("population", "year", "tot_population") == [(2023, 783)]


def test_a_wide_file_with_a_total_of_its_own_is_read_by_year(tmp_path: Path) -> None:
    """The long shape needs a year beside the total."""
    write_table(tmp_path / "a.parquet", beside(WIDE_POPULATION[:1], {"TOT_POPULATION": 999}))
    found = examine(tmp_path)
    assert [year for (year,) in found.rows("population", "year")] == [2010, 2023, 2030]


def test_all_broken_files_are_reported_at_once(tmp_path: Path) -> None:
    """Nobody should have to publish five times to learn of five faults."""
    write_drop(tmp_path)
    write_table(tmp_path / "a.parquet", without(HOUSING, "zip_code"))
    (tmp_path / "b.parquet").write_bytes(b"text")
    (tmp_path / "c.parquet").write_bytes(b"PAR1" + b"\xff" * 40 + b"PAR1")
    assert sorted(errors(examine(tmp_path).report)) == ["missing-column", "not-parquet", "unreadable-file"]
