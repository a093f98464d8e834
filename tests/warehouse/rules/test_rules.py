"""Every rule fires on what it is there for, and says where that is."""

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.drops import (
    ALIASES,
    HOUSING,
    LOCATIONS,
    POPULATION,
    alias,
    homes,
    location,
    people,
    project,
    write_drop,
)
from tests.warehouse.helpers import examine, finding
from warehouse.rules.row_rules import ROW_RULES as RULES

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
        "row 5 2020 has 3643",
        with_population(people("3643", 2020, 1)),
    ),
    Fault(
        "unreadable-value",
        "error",
        "zip_locations.parquet",
        "county_fips_code",
        "row 10 36437 has 1025",
        with_locations(location("36437", "Jackson", "AL", county_fips_code="1025")),
    ),
    Fault(
        "unreadable-value",
        "error",
        "zip_locations.parquet",
        "state_code",
        "row 10 36437 has Ala",
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
        "odd-name",
        "error",
        "zip_locations.parquet",
        "city_name",
        "row 10 36437 has Jack\x1bson",
        with_locations(location("36437", "Jack\x1bson", "AL")),
    ),
    *(
        Fault(
            "garbled-name",
            "error",
            "zip_locations.parquet",
            "city_name",
            f"row 10 36437 has {name}",
            with_locations(location("36437", name, "AL")),
        )
        for name in (
            "DoÃ±a Ana",
            "Do\ufffda Ana",
            "Do?a Ana",
            "O&#39;Fallon",
            "Do&ntilde;a Ana",
            "O%20Fallon",
            "Do\\u00f1a",
        )
    ),
    *(
        Fault(
            "placeholder-name",
            "error",
            "zip_locations.parquet",
            "county_name",
            f"row 10 36437 has {name}",
            with_locations(location("36437", "Jackson", "AL", county_name=name)),
        )
        for name in ("nan", "None", "N/A", "UNKNOWN", "01025", "---", "COUNTY_NAME")
    ),
    Fault(
        "zero-coordinate",
        "error",
        "zip_locations.parquet",
        "longitude",
        "row 10 36437 has 0.0",
        with_locations(location("36437", "Jackson", "AL", longitude=0.0)),
    ),
    Fault(
        "unknown-state",
        "error",
        "zip_locations.parquet",
        "state_code",
        "row 10 36437 has AX",
        with_locations(location("36437", "Jackson", "AX")),
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
        "usps_status",
        "row 4 36436 Bedford AL has tolerated",
        with_aliases(alias(AT, "Bedford", "AL", "tolerated")),
    ),
    Fault(
        "orphan-rows",
        "warning",
        "zip_housing.parquet",
        "zip_code",
        "17270",
        with_housing(homes("17270")),
    ),
    Fault(
        "empty-figure",
        "warning",
        "zip_population.parquet",
        "tot_population",
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
    Fault(
        "unmapped-status",
        "warning",
        "development_projects.parquet",
        "status",
        "Plan check (1 rows)",
        with_projects(project("A-2", status="Plan check")),
    ),
    Fault(
        "unplaced-project",
        "warning",
        "development_projects.parquet",
        None,
        "row 2 A-2",
        with_projects(project("A-2", state_code=None, zip_code=None)),
    ),
    Fault(
        "zip-without-location",
        "warning",
        "development_projects.parquet",
        "zip_code",
        "99999",
        with_projects(project("A-2", zip_code="99999")),
    ),
    Fault(
        "other-state",
        "warning",
        "development_projects.parquet",
        None,
        "row 2 A-2 has ND, but 36436 is in AL",
        with_projects(project("A-2", state_code="ND")),
    ),
    Fault(
        "implausible-project",
        "warning",
        "development_projects.parquet",
        None,
        "row 2 A-2 has 2025-03-05 to 2025-03-04, 13 of 12 units affordable",
        with_projects(project("A-2", start_date=date(2025, 3, 5), affordable_units=13)),
    ),
)


@pytest.mark.parametrize(
    "name", ["True", "Doña Ana", "O'Fallon", "Mc Lean", "88", "Nathan", "Unknownville", "Coeur d'Alene"]
)
def test_odd_names_of_real_places_are_no_fault(tmp_path: Path, name: str) -> None:
    report = examine(write_drop(tmp_path, aliases=[*ALIASES, alias(AT, name, "AL")])).report
    assert report.findings == ()


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
    elsewhere = {"empty-column", "empty-table", "confusable-cities"}  # test_validation.py
    assert {rule.name for rule in RULES} == {fault.rule for fault in FAULTS} | elsewhere
