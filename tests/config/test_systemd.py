"""config/forecast.service: by systemd's own tools, and where it and the settings have to agree."""

import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from config.loading import load
from config.settings import Settings
from tests.support.containerfile import ROOT

UNIT = ROOT / "config" / "forecast.service"


def options() -> dict[str, list[str]]:
    """Every option of the unit; systemd lets one be given several times."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in UNIT.read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found[name].append(value)
    return found


OPTIONS = options()


def analyze(*arguments: str) -> str:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze: apt-get install systemd")
    done = subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stderr


def test_systemd_understands_every_line(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/forecast/bin/forecast serve", f"{sys.executable} serve"))
    assert analyze("verify", "--man=no", str(unit)) == ""


def test_it_is_confined() -> None:
    """By systemd's own measure, from 0 (confined) to 10 (not at all): a service on the network cannot have 0."""
    analyze("security", "--offline=true", "--threshold=15", "--no-pager", str(UNIT))


def test_its_settings_are_known_and_its_tokens_are_credentials(tmp_path: Path) -> None:
    """No other user can read them, and they are no part of the environment."""
    credentials = dict(line.split(":") for line in OPTIONS["LoadCredential"])
    for name in credentials:
        (tmp_path / name).write_text(name * 8)
    given = dict(line.split("=", 1) for line in OPTIONS["Environment"])
    settings = load({name: value.replace("%d", str(tmp_path)) for name, value in given.items()}).settings
    assert settings.operator_read_token == "read-token" * 8
    assert settings.operator_write_token == "write-token" * 8
    assert all(path.startswith("/etc/forecast/") for path in credentials.values())


def test_its_folders_are_those_that_systemd_makes() -> None:
    assert "FORECAST_DATA_DIR=%S/" + OPTIONS["StateDirectory"][0] in OPTIONS["Environment"]
    assert "XDG_RUNTIME_DIR=%t/" + OPTIONS["RuntimeDirectory"][0] in OPTIONS["Environment"]


def test_stopping_leaves_time_to_finish_requests() -> None:
    assert float(OPTIONS["TimeoutStopSec"][0]) >= Settings(data_dir="").drain + 10


def test_every_connection_that_is_allowed_can_be_open() -> None:
    assert int(OPTIONS["LimitNOFILE"][0]) >= 2 * Settings(data_dir="").connections
