"""Every rule fires on what it is there for, and says where that is."""

from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.drops import ALIASES, LOCATIONS, alias, homes, location, people, project, write_drop
from tests.warehouse.helpers import examine, finding
from tests.warehouse.spoiling import Spoil, add, good_drop
from warehouse.rules.row_rules import ROW_RULES as RULES

AT = "36436"


class Fault(msgspec.Struct, frozen=True):
    """A good drop that is spoiled by one fault, and what must be said of it."""

    rule: str
    severity: str
    file: str
    column: str | None
    sample: str
    spoil: Spoil


def fault(rule: str, where: str, sample: str, row: dict[str, Any], severity: str = "error") -> Fault:
    """`where` is the table whose file gets the row, and the column that is reported, if one is."""
    table, _, column = where.partition(".")
    return Fault(rule, severity, f"{table}.parquet", column or None, sample, add(table, row))


def jackson(city: str = "Jackson", state: str = "AL", **place: Any) -> dict[str, Any]:
    return location("36437", city, state, **place)


GARBLED = (
    "Port+Gamble",
    "O&#x27;Fallon",
    "DoÃ±a Ana",
    "Do\ufffda Ana",
    "Do?a Ana",
    "O&#39;Fallon",
    "Do&ntilde;a Ana",
    "O%20Fallon",
    "Do\\u00f1a",
)
PLACEHOLDERS = ("Test 2", "Grand Total", "nan", "None", "N/A", "UNKNOWN", "01025", "---", "COUNTY_NAME")
STATES_IN_NAMES = ("Jackson, AL", "Jackson (al)", "Jackson, Alabama")
LATE = {"start_date": date(2025, 3, 5), "affordable_units": 13}

FAULTS: tuple[Fault, ...] = (
    fault("unreadable-value", "zip_population.zip_code", "row 5 2020 has 3643", people("3643", 2020, 1)),
    fault("unreadable-value", "zip_locations.county_fips_code", "row 10 36437 has 1", jackson(county_fips_code="1")),
    fault("unreadable-value", "zip_locations.state_code", "row 10 36437 has Ala", jackson(state="Ala")),
    fault("missing-value", "zip_locations.city_name", "row 10 36437", jackson(" ")),
    fault("missing-value", "zip_population.year", "row 5 36436", {**people(AT, 1, 1), "year": None}),
    fault("odd-name", "zip_locations.city_name", "row 10 36437 has Jack\x1bson", jackson("Jack\x1bson")),
    fault("garbled-name", "zip_locations.city_name", "row 10 36437 has Do?a Ana", jackson("Do?a Ana")),
    fault("placeholder-name", "zip_locations.county_name", "row 10 36437 has nan", jackson(county_name="nan")),
    fault("odd-name", "zip_locations.city_name", "row 10 36437 has Jack\u200bson", jackson("Jack\u200bson")),
    fault("state-in-name", "zip_locations.city_name", "row 10 36437 has Jackson, AL", jackson("Jackson, AL")),
    fault("unassigned-zip", "zip_locations.zip_code", "row 10 has 00000", location("00000", "Jackson", "AL")),
    fault("zero-coordinate", "zip_locations.longitude", "row 10 36437 has 0.0", jackson(longitude=0.0)),
    fault("unknown-state", "zip_locations.state_code", "row 10 36437 has AX", jackson(state="AX")),
    fault("out-of-range", "zip_population.tot_population", "row 5 36436 2020 has -1", people(AT, 2020, -1)),
    fault("out-of-range", "zip_population.tot_population", "row 5 36436 2020 has 1000001", people(AT, 2020, 1_000_001)),
    fault(
        "out-of-range", "zip_population.tot_population", "row 5 36436 2020 has -666666666", people(AT, 2020, -666666666)
    ),
    fault("out-of-range", "zip_population.year", "row 5 36436 has 20223", people(AT, 20223, 1)),
    fault(
        "out-of-range",
        "zip_housing.est_total_home_demand_2030",
        "row 3 63101 has -5",
        homes("63101", est_total_home_demand_2030=-5),
    ),
    fault("out-of-range", "zip_locations.longitude", "row 10 36437 has 200.5", jackson(longitude=200.5)),
    fault("duplicate-key", "zip_housing", "36436 in zip_housing.parquet row 1, zip_housing.parquet row 3", homes(AT)),
    fault(
        "unknown-status",
        "zip_city_aliases.usps_status",
        "row 4 36436 Bedford AL has tolerated",
        alias(AT, "Bedford", "AL", "tolerated"),
    ),
)
WARNINGS = (
    ("orphan-rows", "zip_housing.zip_code", "17270", homes("17270")),
    ("empty-figure", "zip_population.tot_population", "row 5 36436 2020", people(AT, 2020, None)),
    ("blank-alias", "zip_city_aliases.city_name", "row 4 36436 AL", {**alias(AT, "", "AL"), "city_name": None}),
    ("unknown-figure", "development_projects.total_units", "row 2 A-2 has -1", project("A-2", total_units=-1)),
    ("unmapped-status", "development_projects.status", "Plan check (1 rows)", project("A-2", status="Plan check")),
    ("unplaced-project", "development_projects", "row 2 A-2", project("A-2", state_code=None, zip_code=None)),
    ("zip-without-location", "development_projects.zip_code", "99999", project("A-2", zip_code="99999")),
    ("other-state", "development_projects", "row 2 A-2 has ND, but 36436 is in AL", project("A-2", state_code="ND")),
    (
        "implausible-project",
        "development_projects",
        "row 2 A-2 has 2025-03-05 to 2025-03-04, 13 of 12 units affordable",
        project("A-2", **LATE),
    ),
)
FAULTS += tuple(fault(*warning, severity="warning") for warning in WARNINGS)


def test_odd_names_of_real_places_are_no_fault(tmp_path: Path) -> None:
    names = ["True", "Sample", "University Of Al", "At&t", "Doña Ana", "O'Fallon", "Mc Lean", "88", "Nathan"]
    names += ["Unknownville", "Coeur d'Alene"]
    aliases = [*ALIASES, *(alias(AT, name, "AL") for name in names)]
    assert examine(write_drop(tmp_path, aliases=aliases)).report.findings == ()


def apart() -> list[list[Fault]]:
    """The faults on as few drops as they fit on, because a check of a drop takes long: one of each rule and file."""
    drops: list[list[Fault]] = []
    for one in FAULTS:
        for drop in drops:
            if not any(one.rule == other.rule or one.file == other.file for other in drop):
                drop.append(one)
                break
        else:
            drops.append([one])
    return drops


@pytest.mark.parametrize("faults", apart(), ids=lambda faults: "+".join(one.rule for one in faults))
def test_a_fault_is_found_with_its_file_column_and_rows(tmp_path: Path, faults: list[Fault]) -> None:
    """And nothing else is found that would hide it."""
    drop = good_drop(tmp_path)
    for fault in faults:
        fault.spoil(drop)
    report = examine(tmp_path).report
    for fault in faults:
        found = finding(report, fault.rule)
        assert (found.severity, found.file, found.column) == (fault.severity, fault.file, fault.column)
        assert found.samples == (fault.sample,)
    assert len(report.findings) == len(faults)


@pytest.mark.parametrize(
    ("rule", "column", "names"),
    [
        ("garbled-name", "city_name", GARBLED),
        ("placeholder-name", "county_name", PLACEHOLDERS),
        ("state-in-name", "city_name", STATES_IN_NAMES),
    ],
)
def test_each_name_of_a_kind_is_found(tmp_path: Path, rule: str, column: str, names: tuple[str, ...]) -> None:
    places = [location(f"364{number}", "Jackson", "AL") | {column: name} for number, name in enumerate(names, 40)]
    found = [
        one
        for one in examine(write_drop(tmp_path, locations=[*LOCATIONS, *places])).report.findings
        if one.rule == rule
    ]
    assert sum(one.count for one in found) == len(names)
    assert {one.column for one in found} == {column}


def test_a_column_without_any_value_is_a_warning(tmp_path: Path) -> None:
    rows = [homes(AT, tot_home_available_2020=None), homes("90028", tot_home_available_2020=None)]
    found = finding(examine(write_drop(tmp_path, housing=rows)).report, "empty-column")
    assert (found.severity, found.file) == ("warning", "zip_housing.parquet")
    assert (found.column, found.count) == ("tot_home_available_2020", 2)


def test_every_rule_has_a_drop_here_that_breaks_it() -> None:
    elsewhere = {"empty-column", "empty-table", "confusable-cities"}  # test_validation.py and bad_drops.py
    assert {rule.name for rule in RULES} == {fault.rule for fault in FAULTS} | elsewhere
