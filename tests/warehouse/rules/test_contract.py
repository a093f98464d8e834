"""The contract says what the rules check: good rows fulfil it, and bad ones do not."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
from openapi_schema_validator import OAS31Validator

from tests.support.drops import WIDE_POPULATION
from tests.warehouse.spoiling import good_drop
from warehouse.rules.all_rules import RULES, RuleLimits
from warehouse.rules.contract import json_schema, open_data_contract
from warehouse.schema.findings import Severity
from warehouse.schema.tables import TABLES

NAMES = {"zip_locations": "locations", "zip_population": "population", "zip_housing": "housing"}


def as_json(contract: dict[str, Any]) -> Any:
    return msgspec.json.decode(msgspec.json.encode(contract))


def good(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of a good drop, by table."""
    files = sorted(good_drop(folder).glob("*.parquet"))
    names = {**NAMES, "zip_city_aliases": "aliases"}
    return {
        names.get(file.stem, file.stem): msgspec.json.decode(msgspec.json.encode(pq.read_table(file).to_pylist()))
        for file in files
    }


@pytest.fixture
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


@pytest.mark.parametrize(
    ("table", "change"),
    [
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
    ],
)
def test_a_bad_row_does_not(validator: Any, tmp_path: Path, table: str, change: dict[str, Any]) -> None:
    drop = good(tmp_path)
    drop[table][0].update(change)
    assert list(validator.iter_errors(drop))


def test_a_needed_table_and_every_column_must_be_there(validator: Any, tmp_path: Path) -> None:
    drop = good(tmp_path)
    del drop["aliases"]
    assert list(validator.iter_errors(drop)) == []
    del drop["housing"][0]["tot_home_available_2020"]
    assert list(validator.iter_errors(drop))
    del drop["housing"]
    assert list(validator.iter_errors(drop))


def test_units_below_zero_mean_unknown_and_break_no_contract(validator: Any, tmp_path: Path) -> None:
    drop = good(tmp_path)
    drop["development_projects"][0]["total_units"] = -1
    assert list(validator.iter_errors(drop)) == []


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
            allowed = {"string": {"pattern", "maxLength"}, "date": set()}
            options = set(column.get("logicalTypeOptions", {}))
            assert options <= allowed.get(column["logicalType"], {"minimum", "maximum"})
            assert column.get("primaryKey", False) == (column["name"] in table.key)
            assert all(set(relation) == {"to"} for relation in column.get("relationships", []))
    for custom in contract["customProperties"]:
        assert set(custom) == {"property", "value"}
