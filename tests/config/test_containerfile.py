"""The image: where its Containerfile and other files have to agree, and what of it can be run."""

import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from config.loading import load
from tests.support.containerfile import ROOT, final, image_environment, image_health_check, stages
from tests.support.instance import forecast
from tests.support.listener import listening


def test_the_image_runs_as_a_number_that_is_not_root() -> None:
    user, group = final("USER")[-1].split(":")
    assert int(user) > 0
    (made,) = [line for line in final("RUN") if f"-o {user} -g {group}" in line]
    assert made.split()[-2:] == ["/data", "/inbox"], "a volume takes the owner of the folder that it is mounted on"
    assert final("VOLUME") == ["/data"] == [image_environment()["FORECAST_DATA_DIR"]]


def test_the_image_has_its_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    labels = dict(word.split("=", 1) for line in final("LABEL") for word in shlex.split(line))
    assert labels["org.opencontainers.image.version"] == version


def test_each_stage_that_builds_gets_the_time_of_the_build() -> None:
    """A builder may pass an argument to none but the stage that declares it."""
    building = [stage for stage in stages() if any("pip" in line for name, line in stage if name == "RUN")]
    assert len(building) == 2
    assert all(("ARG", "SOURCE_DATE_EPOCH") in stage for stage in building)


def test_the_image_listens_for_others() -> None:
    settings = load(image_environment()).settings
    assert (settings.listen_host, settings.operator_host) == ("0.0.0.0", "0.0.0.0")
    assert final("EXPOSE") == [f"{settings.listen_port} {settings.operator_port}"]


@pytest.mark.parametrize("given", [{}, {"FORECAST_KEYS_URL": "redis://127.0.0.1:1"}])
@pytest.mark.parametrize("arguments", [["serve"], ["keys", "list"]])
def test_the_image_refuses_embedded_servers(arguments: list[str], given: dict[str, str], tmp_path: Path) -> None:
    """A forgotten URL is one line and exit code 1, never an empty key store; nothing is made in the data folder."""
    ours = image_environment() | {"FORECAST_DATA_DIR": str(tmp_path / "data"), "PATH": os.environ["PATH"]}
    done = forecast(ours | {"FORECAST_LISTEN_PORT": "0", "FORECAST_OPERATOR_PORT": "0"} | given, *arguments)
    missing = "FORECAST_CACHE_URL" if given else "FORECAST_KEYS_URL and FORECAST_CACHE_URL"
    assert done.returncode == 1
    assert done.stderr == f"forecast: {missing} must be set: this installation does not run embedded servers\n"
    assert not (tmp_path / "data").exists()


def health_check(port: int) -> int:
    """The exit code of the image's own health check."""
    command = image_health_check()
    assert command[0] == "python"
    environ = {"FORECAST_OPERATOR_PORT": str(port)}
    return subprocess.run(
        [sys.executable, *command[1:]], env=environ, stderr=subprocess.DEVNULL, check=False
    ).returncode


def test_the_health_check_asks_for_life() -> None:
    """It succeeds on 200 from /health/live alone: not on another status, and not where no process listens."""
    with listening() as operators:
        operators.answer("/health/live", {})
        assert health_check(operators.port) == 0
        assert [said.path for said in operators.asked] == ["/health/live"]
        operators.status = 503
        assert health_check(operators.port) != 0
    assert health_check(1) != 0


def test_the_image_is_built_from_what_it_needs_alone() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    let_through = {line.removeprefix("!") for line in lines if line.startswith("!")}
    copies = [arguments for stage in stages()[:-1] for name, arguments in stage if name == "COPY"]
    copied = {word for arguments in copies for word in arguments.split()[:-1]}
    assert "*" in lines
    assert let_through == copied
    assert all((ROOT / name).exists() for name in copied)
