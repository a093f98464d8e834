"""The commands on a real instance: what they ask is what it answers."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.conftest import Cli, issue
from tests.support.instance import SHORT_DRAIN, Instance, environment, serving
from tests.support.waiting import until
from warehouse.releases.instances import live_instances

TOKEN = "write-token-of-the-tests"


@pytest.fixture(scope="module")
def instance(made: tuple[Path, str], short_folder: Path) -> Iterator[Instance]:
    data = short_folder / "data of the instance"
    shutil.copytree(made[0], data)
    with serving(environment(data, operator_write_token=TOKEN, drain=SHORT_DRAIN), short_folder / "log") as running:
        yield running
    shutil.rmtree(data)  # another test process may give some of the tests back: then there is another instance


@pytest.fixture
def commands(cli: Cli, short_folder: Path) -> Cli:
    cli.data = short_folder / "data of the instance"
    cli.settings["operator_write_token"] = TOKEN
    return cli


@pytest.fixture
def key(commands: Cli, instance: Instance) -> str:
    issued: str = issue(commands)["key"]
    return issued


def name_of(commands: Cli) -> str:
    """The id of the one instance that runs."""
    (record,) = live_instances(commands.data)
    assert re.fullmatch("[0-9a-f]{8}", record.instance)
    return record.instance


def test_its_status_is_shown(commands: Cli, instance: Instance, key: str, made: tuple[Path, str]) -> None:
    for _ in range(3):
        assert instance.zip_code(key).status_code == 200
    until(lambda: _answers(commands) >= 3)
    done = commands("status")
    assert done.code == 0, done.out
    assert done.out.startswith("All is well.")
    assert f"{name_of(commands)} on " in done.out
    assert made[1] in done.out
    assert commands("status", "--url", instance.operators).out.startswith("All is well.")


@pytest.mark.usefixtures("instance", "key")
def test_it_is_watched(commands: Cli) -> None:
    def reported() -> list[str]:
        (line,) = commands("top", "--count", "1").out.splitlines()[1:]
        return line.split()[1:3]

    until(lambda: reported() == [name_of(commands), "ok"])


def test_a_request_is_found_by_its_id(commands: Cli, instance: Instance, key: str) -> None:
    refused = instance.zip_code(key, "1").headers["x-request-id"]
    (line,) = commands("requests", "find", refused, "--json").json
    assert (line["status"], line["outcome"], line["partner"]) == (400, "invalid_parameter", "acme")
    assert commands("requests", "find", "never-seen").code == 1
    assert commands("requests", "sample", "100%", "--json").json[0]["rate"] == 1.0

    def found() -> bool:
        answered = instance.zip_code(key).headers["x-request-id"]
        return commands("requests", "find", answered).code == 0

    until(found)  # workers are told a moment later
    assert commands("requests", "sample", "0").code == 0


def test_a_lost_cache_is_warmed(commands: Cli, instance: Instance, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.nice", lambda _: None)
    assert commands("cache", "purge", "--yes").code == 0
    assert _explained(commands) == "miss"
    until(lambda: _near(commands) == 0)
    done = commands("cache", "warm")
    assert (done.code, "warning" in done.err) == (0, False)
    assert _explained(commands) == "hit"
    assert instance.zip_code(key).headers["cache-status"] == "forecast; hit; detail=shared"


def _explained(commands: Cli) -> str:
    found: str = commands("cache", "explain", "zip_code=36436", "--json").json["shared"]
    return found


def _near(commands: Cli) -> int:
    """Entries, as the worker told a moment ago."""
    (reported,) = commands("cache", "stats", "--json").json["near_caches"]
    return sum(worker["entries"] for worker in reported["workers"])


def _answers(commands: Cli) -> int:
    counted = commands("status", "--json").json["instances"][0]["overview"]["hit_rate_now"]
    return int(counted["near"] + counted["shared"] + counted["warehouse"])
