"""All that is wrong with a drop is found, counted and named at once."""

from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.drops import (
    HOUSING,
    LOCATIONS,
    POPULATION,
    Rows,
    alias,
    homes,
    location,
    people,
    project,
    write_drop,
    write_table,
)
from tests.warehouse.helpers import errors, examine, finding

AT = "36436"


def test_a_faultless_drop_has_no_findings(tmp_path: Path) -> None:
    """A warning that always shows is read by nobody."""
    assert examine(write_drop(tmp_path, projects=[project("A-1")])).report.findings == ()


def test_bounds_are_inclusive(tmp_path: Path) -> None:
    edge = location("96701", "Aiea", "HI", latitude=-90.0, longitude=180.0)
    rows = [*POPULATION, people(AT, 1900, 0), people(AT, 2200, 1_000_000)]
    found = examine(write_drop(tmp_path, locations=[*LOCATIONS, edge], population=rows))
    assert not errors(found.report)


def test_units_below_zero_are_unknown_but_absurd_ones_are_errors(tmp_path: Path) -> None:
    rows = [project("A-1", total_units=-1), project("A-2", affordable_units=2_000_000)]
    found = examine(write_drop(tmp_path, projects=rows)).report
    assert errors(found) == ["out-of-range"]
    assert finding(found, "out-of-range").column == "affordable_units"


def test_duplicates_are_found_across_files_and_name_both(tmp_path: Path) -> None:
    """Two part files, or one file dropped twice under two names."""
    write_drop(tmp_path)
    write_table(tmp_path / "again.parquet", [homes("63366"), homes(AT)])
    found = finding(examine(tmp_path).report, "duplicate-key")
    assert (found.severity, found.table, found.count) == ("error", "housing", 2)
    assert found.samples == ("36436 in again.parquet row 2, zip_housing.parquet row 1",)


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("locations", [location(AT, "Jackson", "AL")]),
        ("population", [people(AT, 2023, 784)]),
        ("aliases", [alias("90028", "Hollywood", "CA", "unacceptable")]),
        ("development_projects", [project("A-1", total_units=1)]),
    ],
)
def test_every_table_has_a_key_that_must_not_repeat(tmp_path: Path, table: str, rows: Rows) -> None:
    write_drop(tmp_path, projects=[project("A-1")])
    write_table(tmp_path / "again.parquet", rows)
    assert finding(examine(tmp_path).report, "duplicate-key").table == table


def test_an_integer_and_a_text_spelling_of_a_zip_code_are_the_same_key(tmp_path: Path) -> None:
    write_drop(tmp_path, housing=[homes("00501")])
    write_table(tmp_path / "again.parquet", [homes(501)], {"zip_code": pa.int64()})  # type: ignore[arg-type]
    assert finding(examine(tmp_path).report, "duplicate-key").count == 2


def test_a_missing_zip_code_is_no_duplicate_of_another(tmp_path: Path) -> None:
    nameless = [{**homes(AT), "zip_code": None}] * 2
    found = examine(write_drop(tmp_path, housing=[*HOUSING, *nameless])).report
    assert errors(found) == ["missing-value"]
    assert finding(found, "missing-value").count == 2


def test_findings_are_counted_file_by_file(tmp_path: Path) -> None:
    write_drop(tmp_path, housing=None)
    for number in (1, 2):
        rows = [homes(f"6310{number}", tot_home_available_2020=-1)]
        write_table(tmp_path / f"part-{number}.parquet", rows)
    found = [one for one in examine(tmp_path).report.findings if one.rule == "out-of-range"]
    assert [(one.file, one.count) for one in found] == [("part-1.parquet", 1), ("part-2.parquet", 1)]


def test_all_faults_are_reported_at_once(tmp_path: Path) -> None:
    write_drop(
        tmp_path,
        locations=[*LOCATIONS, location("36437", "Jackson", "A1", latitude=99.0)],
        population=[*POPULATION, people(AT, 2023, -3), people("17270", 2020, 4)],
    )
    found = examine(tmp_path).report
    assert sorted(errors(found)) == ["duplicate-key", "out-of-range", "out-of-range", "unreadable-value"]
    assert found.count("warning") == 1


def test_findings_come_worst_first(tmp_path: Path) -> None:
    rows = [*HOUSING, homes("17270"), homes(AT)]
    found = examine(write_drop(tmp_path, housing=[{**row, "extra": "x"} for row in rows])).report
    assert [one.severity for one in found.findings] == ["error", "warning", "info"]
    assert found.summary() == "1 error, 1 warning, 1 note"


def test_orphans_are_looked_for_among_all_locations(tmp_path: Path) -> None:
    """Also if a location has no ZIP code, which must not make all others unknown or known."""
    nameless = {**location(AT, "Jackson", "AL"), "zip_code": None}
    found = examine(write_drop(tmp_path, locations=[*LOCATIONS, nameless], housing=[*HOUSING, homes("17270")])).report
    assert finding(found, "orphan-rows").samples == ("17270",)


def test_cities_that_answer_to_the_same_query_are_reported(tmp_path: Path) -> None:
    rows = [*LOCATIONS, location("63103", "St. Louis", "MO"), location("62201", "St Louis", "IL")]
    found = finding(examine(write_drop(tmp_path, locations=rows)).report, "confusable-cities")
    assert (found.severity, found.count) == ("warning", 1)
    assert found.samples == ("MO: Saint Louis, St. Louis",)


def test_a_figure_without_any_value_follows_from_the_lack_of_its_column(tmp_path: Path) -> None:
    short = [{name: value for name, value in row.items() if name != "tot_home_available_2021"} for row in HOUSING]
    report = examine(write_drop(tmp_path, housing=short)).report
    assert [(one.rule, one.follows) for one in report.findings] == [
        ("missing-figure", None),
        ("empty-column", "missing-figure"),
    ]
