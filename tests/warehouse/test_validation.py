"""All that is wrong with a drop is found, counted and named at once."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
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
from warehouse.rules.rows import ROW_RULES as RULES

AT = "36436"


def with_locations(*rows: dict[str, Any]) -> Callable[[Path], Path]:
    return lambda folder: write_drop(folder, locations=[*LOCATIONS, *rows])


def with_population(*rows: dict[str, Any]) -> Callable[[Path], Path]:
    return lambda folder: write_drop(folder, population=[*POPULATION, *rows])


def with_housing(*rows: dict[str, Any]) -> Callable[[Path], Path]:
    return lambda folder: write_drop(folder, housing=[*HOUSING, *rows])


def with_aliases(*rows: dict[str, Any]) -> Callable[[Path], Path]:
    return lambda folder: write_drop(folder, aliases=[*ALIASES, *rows])


def with_projects(*rows: dict[str, Any]) -> Callable[[Path], Path]:
    return lambda folder: write_drop(folder, projects=[project("A-1"), *rows])


class Fault(msgspec.Struct, frozen=True):
    """A drop with one fault, and what must be said of it."""

    rule: str
    severity: str
    file: str
    column: str | None
    sample: str
    drop: Callable[[Path], Path]


FAULTS = (
    Fault(
        "unreadable-value",
        "error",
        "zip_population.parquet",
        "zip_code",
        "row 5: 3643",
        with_population(people("3643", 2020, 1)),
    ),
    Fault(
        "unreadable-value",
        "error",
        "zip_locations.parquet",
        "county_fips_code",
        "row 10: 1025",
        with_locations(location("36437", "Jackson", "AL", county_fips_code="1025")),
    ),
    Fault(
        "unreadable-value",
        "error",
        "zip_locations.parquet",
        "state_code",
        "row 10: Ala",
        with_locations(location("36437", "Jackson", "Ala")),
    ),
    Fault(
        "missing-value",
        "error",
        "zip_locations.parquet",
        "city_name",
        "row 10 36437",
        with_locations(location("36437", " ", "AL")),
    ),
    Fault(
        "missing-value",
        "error",
        "zip_population.parquet",
        "year",
        "row 5 36436",
        with_population({**people(AT, 1, 1), "year": None}),
    ),
    Fault(
        "out-of-range",
        "error",
        "zip_population.parquet",
        "tot_population",
        "row 5 36436 2020 has -1",
        with_population(people(AT, 2020, -1)),
    ),
    Fault(
        "out-of-range",
        "error",
        "zip_population.parquet",
        "tot_population",
        "row 5 36436 2020 has 1000001",
        with_population(people(AT, 2020, 1_000_001)),
    ),
    Fault(
        "out-of-range",
        "error",
        "zip_population.parquet",
        "year",
        "row 5 36436 has 20223",
        with_population(people(AT, 20223, 1)),
    ),
    Fault(
        "out-of-range",
        "error",
        "zip_housing.parquet",
        "est_total_home_demand_2030",
        "row 3 63101 has -5",
        with_housing(homes("63101", est_total_home_demand_2030=-5)),
    ),
    Fault(
        "out-of-range",
        "error",
        "zip_locations.parquet",
        "longitude",
        "row 10 36437 has 200.5",
        with_locations(location("36437", "Jackson", "AL", longitude=200.5)),
    ),
    Fault(
        "duplicate-key",
        "error",
        "zip_housing.parquet",
        None,
        "36436 in zip_housing.parquet row 1, zip_housing.parquet row 3",
        with_housing(homes(AT)),
    ),
    Fault(
        "unknown-status",
        "error",
        "zip_city_aliases.parquet",
        None,
        "row 4 36436 Bedford AL has tolerated",
        with_aliases(alias(AT, "Bedford", "AL", "tolerated")),
    ),
    Fault(
        "orphan-rows",
        "warning",
        "zip_housing.parquet",
        None,
        "17270",
        with_housing(homes("17270")),
    ),
    Fault(
        "empty-figure",
        "warning",
        "zip_population.parquet",
        None,
        "row 5 36436 2020",
        with_population(people(AT, 2020, None)),
    ),
    Fault(
        "blank-alias",
        "warning",
        "zip_city_aliases.parquet",
        "city_name",
        "row 4 36436 AL",
        with_aliases({**alias(AT, "", "AL"), "city_name": None}),
    ),
    Fault(
        "unknown-figure",
        "warning",
        "development_projects.parquet",
        "total_units",
        "row 2 A-2 has -1",
        with_projects(project("A-2", total_units=-1)),
    ),
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.rule}-{fault.column}-{fault.sample}")
def test_a_fault_is_found_with_its_file_column_and_rows(tmp_path: Path, fault: Fault) -> None:
    """And nothing else is found that would hide it."""
    report = examine(fault.drop(tmp_path)).report
    found = finding(report, fault.rule)
    assert (found.severity, found.file, found.column) == (fault.severity, fault.file, fault.column)
    assert found.samples == (fault.sample,)
    assert len(report.findings) == 1


def test_a_column_without_any_value_is_a_warning(tmp_path: Path) -> None:
    rows = [homes(AT, tot_home_available_2020=None), homes("90028", tot_home_available_2020=None)]
    found = finding(examine(write_drop(tmp_path, housing=rows)).report, "empty-column")
    assert (found.severity, found.file) == ("warning", "zip_housing.parquet")
    assert (found.column, found.count) == ("tot_home_available_2020", 2)


def test_every_rule_has_a_drop_here_that_breaks_it() -> None:
    elsewhere = {"empty-column", "empty-table", "confusable-cities"}
    assert {rule.name for rule in RULES} == {fault.rule for fault in FAULTS} | elsewhere


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


def test_a_table_without_any_row_is_an_error(tmp_path: Path) -> None:
    """An export that went wrong must not empty a table."""
    write_drop(tmp_path)
    path = tmp_path / "zip_housing.parquet"
    pq.write_table(pq.read_table(path).slice(0, 0), path)
    found = finding(examine(tmp_path).report, "empty-table")
    assert (found.severity, found.table) == ("error", "housing")


def test_cities_that_answer_to_the_same_query_are_reported(tmp_path: Path) -> None:
    rows = [*LOCATIONS, location("63103", "St. Louis", "MO"), location("62201", "St Louis", "IL")]
    found = finding(examine(write_drop(tmp_path, locations=rows)).report, "confusable-cities")
    assert (found.severity, found.count) == ("warning", 1)
    assert found.samples == ("MO: Saint Louis, St. Louis",)
