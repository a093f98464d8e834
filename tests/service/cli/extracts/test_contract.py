"""forecast extracts contract, and check --no-release: what upstream's CI gets, and how it uses it."""

import json
from pathlib import Path

import pytest
import yaml

from tests.service.conftest import Cli
from tests.support.drops import homes, write_drop
from tests.warehouse.helpers import contents
from warehouse.schema.tables import TABLES


@pytest.mark.parametrize(
    ("form", "mark"), [("json-schema", "https://json-schema.org/draft/2020-12/schema"), ("odcs", "DataContract")]
)
def test_a_contract_is_printed_or_written(cli: Cli, tmp_path: Path, form: str, mark: str) -> None:
    printed = cli("extracts", "contract", "--format", form)
    written = cli("extracts", "contract", "--format", form, "--out", str(tmp_path / "contract.json"))
    assert (printed.code, printed.err, written.code, written.out) == (0, "", 0, "")
    assert mark in printed.json.values()
    assert printed.out.isascii(), "no control characters, which it names"
    assert json.loads((tmp_path / "contract.json").read_text()) == printed.json == yaml.safe_load(printed.out)
    for table in TABLES:
        assert table.name in printed.out
    assert not cli.data.exists()


def test_a_contract_has_the_limits_in_force(cli: Cli) -> None:
    rules = cli("extracts", "contract", limits="total-drift=12.5%").json["x-rules"]
    assert [rule["limit"] for rule in rules if rule["name"] == "total-drift"] == [0.125]


def test_a_contract_replaces_no_extract_and_needs_a_folder(cli: Cli, drop: Path) -> None:
    before = contents(drop)
    done = cli("extracts", "contract", "--out", str(drop / "zip_housing.parquet"))
    assert done.code == 2
    assert "--out must end in .json, .yaml, .yml" in done.err
    path = drop / "no" / "contract.yaml"
    done = cli("extracts", "contract", "--out", str(path))
    assert done.code == 1
    assert f"{path}: No such file" in done.error()
    assert contents(drop) == before


def test_wrong_usage_is_exit_code_2(cli: Cli, drop: Path) -> None:
    assert cli("extracts", "contract", "--format", "avro").code == 2
    done = cli("extracts", "check", str(drop), "--partial")
    assert done.code == 2
    assert "--partial needs --no-release" in done.err


@pytest.mark.usefixtures("release")
def test_a_drop_is_checked_by_itself(cli: Cli, tmp_path: Path) -> None:
    other = str(write_drop(tmp_path / "other", aliases=None))
    done = cli("extracts", "check", other, "--no-release")
    assert done.code == 0
    assert "not compared with a release" in done.err
    assert "kept from" not in done.err
    as_json = cli("extracts", "check", other, "--no-release", "--json").json
    assert set(as_json) == {"result", "release", "findings", "comparison"}
    assert (as_json["result"], as_json["release"], as_json["comparison"]) == ("passed", None, None)
    bad = cli("extracts", "check", str(write_drop(tmp_path / "bad", housing=[homes("3643")])), "--no-release")
    assert bad.code == 1
    assert "leading zero lost" in " ".join(bad.err.split())


def test_no_data_folder_is_needed(cli: Cli, drop: Path) -> None:
    assert cli("extracts", "check", str(drop), "--no-release", data_dir="/proc/nowhere").code == 0


def test_a_needed_table_must_be_there_unless_part_of_a_drop_is_checked(cli: Cli, tmp_path: Path) -> None:
    part = str(write_drop(tmp_path / "part", locations=None, population=None, aliases=None))
    whole = cli("extracts", "check", part, "--no-release", "--json")
    assert whole.code == 1
    assert [one["table"] for one in whole.json["findings"]] == ["locations", "population"]
    assert {one["rule"] for one in whole.json["findings"]} == {"missing-table"}
    partial = cli("extracts", "check", part, "--no-release", "--partial", "--json")
    assert (partial.code, partial.json["findings"]) == (0, [])
