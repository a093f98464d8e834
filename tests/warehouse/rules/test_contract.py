"""The contract says what the rules check: good rows fulfil it, and bad ones do not."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from openapi_schema_validator import OAS31Validator

from tests.support.drops import WIDE_POPULATION, write_table
from tests.warehouse.helpers import errors, examine
from tests.warehouse.spoiling import GOOD, good_drop
from warehouse.rules.all_rules import RULES, RuleLimits
from warehouse.rules.contract import json_schema, open_data_contract
from warehouse.schema.findings import Severity
from warehouse.schema.tables import TABLES

Change = tuple[str, dict[str, Any]]  # of the first row of a table

NAMES = {
    "zip_locations": "locations",
    "zip_population": "population",
    "zip_housing": "housing",
    "zip_city_aliases": "aliases",
}


def as_json(contract: dict[str, Any]) -> Any:
    return msgspec.json.decode(msgspec.json.encode(contract))


def good(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of a good drop, by table."""
    files = sorted(good_drop(folder).glob("*.parquet"))
    return {
        NAMES.get(file.stem, file.stem): msgspec.json.decode(msgspec.json.encode(pq.read_table(file).to_pylist()))
        for file in files
    }


def written(folder: Path, changes: Iterable[Change]) -> Path:
    """A good drop in which each change is made to the first row of its table."""
    drop = good_drop(folder)
    changed: dict[str, dict[str, Any]] = {}
    for table, change in changes:
        changed.setdefault(table, {}).update(change)
    for table, change in changed.items():
        name = {ours: file for file, ours in NAMES.items()}.get(table, table)
        first, *others = GOOD[name]
        kinds = {column: pa.float64() for column, value in change.items() if isinstance(value, float)}
        write_table(drop / f"{name}.parquet", [{**first, **change}, *others], kinds)
    return drop


def of_other_columns(changes: Iterable[Change]) -> list[list[Change]]:
    """The changes on as few drops as they fit on: one for each column, because a check of a drop takes long."""
    drops: list[list[Change]] = []
    for table, change in changes:
        for drop in drops:
            if not any(table == other and change.keys() & columns for other, columns in drop):
                drop.append((table, change))
                break
        else:
            drops.append([(table, change)])
    return drops


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = as_json(json_schema(RuleLimits(), {}))
    OAS31Validator.check_schema(schema)
    return OAS31Validator(schema)


def test_a_good_drop_fulfils_the_schema(validator: Any, tmp_path: Path) -> None:
    """In the long and in the wide shape."""
    drop = good(tmp_path)
    assert list(validator.iter_errors(drop)) == []
    wide = [{name.lower(): value for name, value in row.items()} for row in WIDE_POPULATION]
    assert list(validator.iter_errors({**drop, "population": wide})) == []


BAD_ROWS: tuple[Change, ...] = (
    ("housing", {"zip_code": "3643"}),
    ("housing", {"zip_code": None}),
    ("housing", {"tot_home_available_2020": -1}),
    ("housing", {"tot_home_available_2020": 1.5}),
    ("population", {"year": 20223}),
    ("population", {"tot_population": 1_000_001}),
    ("locations", {"latitude": 91}),
    ("locations", {"state_code": "Alabama"}),
    ("locations", {"city_name": "x" * 96}),
    ("aliases", {"usps_status": None}),
    ("development_projects", {"total_units": 1_000_001}),
    ("aliases", {"usps_status": "foo"}),
    ("aliases", {"usps_status": ""}),
    ("aliases", {"state_code": "XX"}),
    ("locations", {"state_code": "XX"}),
    ("development_projects", {"state_code": "XX"}),
    ("locations", {"city_name": ""}),
    ("locations", {"city_name": " \u00a0"}),
    ("locations", {"city_name": "Jack\x1bson"}),
    ("locations", {"county_name": "Clarke\u202eCounty"}),
    ("locations", {"county_name": "x" * 96}),
    ("development_projects", {"project_id": ""}),
    ("development_projects", {"project_name": "x" * 10_001}),
    ("locations", {"latitude": 0.0}),
    ("locations", {"longitude": -0.4}),
    ("development_projects", {"latitude": 0.4}),
)
LET_THROUGH: tuple[Change, ...] = (
    ("aliases", {"city_name": ""}),
    ("aliases", {"usps_status": "unacceptable"}),
    ("locations", {"county_name": "a" * 95, "state_code": "GU"}),
    ("locations", {"latitude": 0.5, "longitude": None}),
    ("locations", {"latitude": -14.3, "longitude": 180.0}),
    ("population", {"year": 1900, "tot_population": None}),
    ("development_projects", {"state_code": None, "total_units": -1, "latitude": None}),
)


def test_a_bad_row_fulfils_neither_the_schema_nor_the_rules(validator: Any, tmp_path: Path) -> None:
    for table, change in BAD_ROWS:
        drop = good(tmp_path / "good")
        drop[table][0].update(change)
        assert list(validator.iter_errors(drop)), change
    for number, changes in enumerate(of_other_columns(BAD_ROWS)):
        report = examine(written(tmp_path / str(number), changes)).report
        found = {(one.table, one.column) for one in report.findings if one.severity == "error"}
        assert found == {(table, column) for table, change in changes for column in change}


def test_a_row_that_the_rules_let_through_fulfils_the_schema(validator: Any, tmp_path: Path) -> None:
    """Units below zero mean unknown. Whether a place is where it should be, a schema cannot say."""
    for number, changes in enumerate(of_other_columns(LET_THROUGH)):
        drop = good(tmp_path / "good")
        for table, change in changes:
            drop[table][0].update(change)
        assert list(validator.iter_errors(drop)) == []
        assert errors(examine(written(tmp_path / str(number), changes)).report) == []


@pytest.mark.parametrize(
    ("figures", "fulfils"),
    [
        ({"tot_census_pop_1900": 1, "tot_fx_pop_2200": 2}, True),
        ({"tot_census_pop_2010": 531, "tot_fx_pop_2030": None, "city_name": "Dickinson"}, True),
        ({"tot_fx_pop_2030": 1, "tot_fx_pop_9999": 2}, False),
        ({"tot_fx_pop_2030": 1, "tot_fx_pop_1899": 2}, False),
        ({"tot_fx_pop_2030": 1, "tot_census_pop_2201": 2}, False),
        ({"tot_fx_pop_2030": -1}, False),
        ({"city_name": "Dickinson"}, False),
        ({}, False),
    ],
)
def test_a_wide_row_has_figures_of_possible_years(
    validator: Any, tmp_path: Path, figures: dict[str, Any], fulfils: bool
) -> None:
    rows = [{"zip_code": "36436", **figures}, {"zip_code": "90028", **figures}]
    assert (not list(validator.iter_errors({**good(tmp_path / "good"), "population": rows}))) == fulfils
    drop = good_drop(tmp_path / "drop")
    write_table(drop / "zip_population.parquet", rows)
    assert (not errors(examine(drop).report)) == fulfils


def test_rows_say_what_identifies_them_and_texts_how_long_they_may_be() -> None:
    rows = as_json(json_schema(RuleLimits(), {}))["$defs"]
    keys = {table.name: list(table.key) for table in TABLES}
    assert {name: row["x-key"] for name, row in rows.items()} == {**keys, "population_wide": ["zip_code"]}
    for row in rows.values():
        for column in row["properties"].values():
            if "maxLength" in column:
                assert column["description"] == f"text of at most {column['maxLength']:,} characters"


def test_a_needed_table_and_every_column_must_be_there(validator: Any, tmp_path: Path) -> None:
    drop = good(tmp_path)
    del drop["aliases"]
    assert list(validator.iter_errors(drop)) == []
    del drop["housing"][0]["tot_home_available_2020"]
    assert list(validator.iter_errors(drop))
    del drop["housing"]
    assert list(validator.iter_errors(drop))


def test_both_forms_have_every_rule_with_the_limit_and_severity_in_force() -> None:
    limits = RuleLimits({"total-drift": 0.125})
    severities: dict[str, Severity] = {"orphan-rows": "error"}
    in_odcs = open_data_contract(limits, severities)["customProperties"][0]["value"]
    assert json_schema(limits, severities)["x-rules"] == in_odcs
    assert [rule["name"] for rule in in_odcs] == list(RULES)
    by_name = {rule["name"]: rule for rule in in_odcs}
    assert (by_name["total-drift"]["limit"], by_name["orphan-rows"]["severity"]) == (0.125, "error")


def test_the_version_changes_with_the_contract_only() -> None:
    first, again = open_data_contract(RuleLimits(), {}), open_data_contract(RuleLimits(), {})
    other = open_data_contract(RuleLimits({"total-drift": 0.125}), {})
    assert first["version"] == again["version"] != other["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+\+[0-9a-f]{12}", first["version"])


def test_the_open_data_contract_has_the_structure_of_the_standard() -> None:
    """ODCS 3.1.0: what is required, the values that are allowed, and no member that it does not know."""
    contract = as_json(open_data_contract(RuleLimits(), {}))
    assert set(contract) == {
        *("apiVersion", "kind", "id", "version", "status"),  # required
        *("name", "description", "schema", "customProperties"),
    }
    assert (contract["apiVersion"], contract["kind"], contract["status"]) == ("v3.1.0", "DataContract", "active")
    assert set(contract["description"]) <= {"purpose", "limitations", "usage"}
    assert [one["name"] for one in contract["schema"]] == [table.name for table in TABLES]
    for one, table in zip(contract["schema"], TABLES, strict=True):
        assert one["logicalType"] == "object"
        assert [column["name"] for column in one["properties"]] == list(table.column_names)
        assert {check.get("type", "library") for check in one["quality"]} == {"library", "text"}
        for check in one["quality"]:
            library = {"metric": {"rowCount", "duplicateValues"}, "severity": {"error"}}
            assert check.get("type") == "text" or check["metric"] in library["metric"]
        for column in one["properties"]:
            assert column["logicalType"] in {"string", "integer", "number", "date"}
            allowed = {"string": {"pattern", "minLength", "maxLength"}, "date": set()}
            options = set(column.get("logicalTypeOptions", {}))
            assert options <= allowed.get(column["logicalType"], {"minimum", "maximum"})
            words = column.get("quality", [{"metric": "invalidValues", "arguments": {"validValues": []}}])
            assert [(one["metric"], set(one["arguments"])) for one in words] == [("invalidValues", {"validValues"})]
            assert words[0]["arguments"]["validValues"] == list(table.column(column["name"]).choices)
            assert column.get("primaryKey", False) == (column["name"] in table.key)
            assert all(set(relation) == {"to"} for relation in column.get("relationships", []))
    for custom in contract["customProperties"]:
        assert set(custom) == {"property", "value"}
