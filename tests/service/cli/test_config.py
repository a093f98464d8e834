"""forecast config: what is in force, where it came from, and no secret."""

import os
from pathlib import Path

import pytest

from config import resources
from config.metadata import names
from config.resources import memory_source, processors_source
from tests.service.conftest import Cli

SECRET = "hunter2-and-a-few-more-characters"


def test_every_setting_is_listed(cli: Cli) -> None:
    listed, shown = cli("config", "--json", workers="3").json, cli("config", workers="3")
    assert [entry["name"] for entry in listed] == list(names())
    by_name = {entry["name"]: entry for entry in listed}
    assert set(by_name["workers"]) == {"name", "variable", "value", "source", "description"}
    assert by_name["workers"]["value"] == 3
    assert by_name["workers"]["source"] == by_name["workers"]["variable"] == "FORECAST_WORKERS"
    assert by_name["drain"]["source"] == "default"
    assert shown.code == 0
    assert "FORECAST_WORKERS = 3  (FORECAST_WORKERS)" in shown.out
    assert f"FORECAST_DATA_DIR = {cli.data}" in shown.out
    assert all(f"FORECAST_{name.upper()} = " in shown.out for name in names())


def test_no_secret_is_shown(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "url").write_text(f"redis://u:{SECRET}@[fd00::1]:6379/0")
    for form in ((), ("--json",)):
        done = cli(
            "config", *form, keys_pepper=SECRET, keys_url_file=tmp_path / "url", cache_url=f"redis://:{SECRET}@h"
        )
        assert done.code == 0
        assert SECRET not in done.out
        assert "redis://u:********@[fd00::1]:6379/0" in done.out
        assert "redis://:********@h" in done.out


def test_defaults_are_shown_whatever_is_set(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # this checkout may have the pepper of a demo
    monkeypatch.setattr("config.loading._checkout", lambda: tmp_path)
    assert cli("config", wrkrs="3").code == 1
    done = cli("config", "--defaults", "--json", wrkrs="3", drain="x")
    assert done.code == 0
    assert {entry["source"] for entry in done.json} == {"default", processors_source(), memory_source()}


@pytest.mark.parametrize(
    ("limited", "sources"),
    [
        (False, {"the processors of this machine", "the memory of this machine"}),
        (True, {"the processor limit of this cgroup", "the memory limit of this cgroup"}),
    ],
)
def test_a_container_s_limit_is_named_as_the_source(
    cli: Cli, limited: bool, sources: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(resources, "processors", lambda: 1 if limited else 2)
    monkeypatch.setattr(resources, "memory", lambda: total // 2 if limited else total)
    shown = {entry["name"]: entry["source"] for entry in cli("config", "--json").json}
    assert {shown[name] for name in ("workers", "near_cache_bytes", "lookup_memory")} == sources
