"""forecast extracts watch: what is printed where, the exit codes, and how it ends."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.service.conftest import Cli
from tests.support.drops import people, write_drop
from tests.support.instance import environment
from tests.support.waiting import PATIENCE
from warehouse.files.atomic import exclusive


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    folder = tmp_path / "inbox"
    folder.mkdir()
    return folder


def put(inbox: Path, name: str, figure: int = 783) -> None:
    """A complete drop; it is good unless the figure is not."""
    write_drop(inbox / name, population=[people("36436", 2023, figure)])
    (inbox / name / "_SUCCESS").touch()


def said_until(process: "subprocess.Popen[str]", kind: str) -> list[str]:
    """The kinds of event up to one of `kind`, as they come. Ends the process if that never comes."""
    assert process.stdout is not None
    kinds: list[str] = []
    alarm = threading.Timer(PATIENCE, process.kill)
    alarm.start()
    try:
        while not kinds or kinds[-1] != kind:
            line = process.stdout.readline()
            assert line, f"nothing but {kinds}"
            kinds.append(json.loads(line)["event"])
    finally:
        alarm.cancel()
    return kinds


def events(out: str) -> list[Any]:
    return [json.loads(line) for line in out.splitlines()]


def test_once_publishes_what_is_complete(cli: Cli, inbox: Path) -> None:
    put(inbox, "2026-10")
    write_drop(inbox / "arriving")
    done = cli("extracts", "watch", str(inbox), "--once")
    assert (done.code, done.out) == (0, "")
    assert "2026-10 was published" in done.err
    assert len(cli("extracts", "list", "--json").json) == 1
    assert (inbox / "arriving").exists()
    (report,) = inbox.glob("published/2026-10-*/report.txt")
    assert "Published: 9 ZIP codes" in report.read_text()


def test_once_waits_until_a_marked_drop_has_settled(cli: Cli, inbox: Path) -> None:
    put(inbox, "2026-10")
    begun = time.monotonic()
    assert "2026-10 was published" in cli("extracts", "watch", str(inbox), "--once", inbox_settle=1).err
    assert time.monotonic() - begun >= 0.9


def test_once_leaves_a_drop_whose_marker_came_first(cli: Cli, inbox: Path) -> None:
    """The rest of it may still be copied."""
    (inbox / "2026-10").mkdir()
    (inbox / "2026-10" / "_SUCCESS").touch()
    time.sleep(0.05)  # the file system's clock ticks slowly
    write_drop(inbox / "2026-10")
    assert cli("extracts", "watch", str(inbox), "--once").code == 0
    assert (inbox / "2026-10").exists()


def test_once_with_a_refused_drop_is_exit_code_1(cli: Cli, inbox: Path) -> None:
    put(inbox, "bad", figure=-1)
    put(inbox, "good")
    done = cli("extracts", "watch", str(inbox), "--once", "--json")
    assert done.code == 1
    said = {event["drop"]: event for event in events(done.out) if event["event"] in ("refused", "published")}
    assert {drop: event["event"] for drop, event in said.items()} == {"bad": "refused", "good": "published"}
    report = Path(said["bad"]["report"])
    assert "out-of-range" in report.read_text()
    findings = json.loads(report.with_suffix(".json").read_text())["findings"]
    assert findings[0]["severity"] == "error"
    assert Path(said["bad"]["place"]).is_dir()


def test_the_folder_must_be_named_and_exist(cli: Cli, inbox: Path) -> None:
    done = cli("extracts", "watch", "--once")
    assert done.code == 2
    assert "FORECAST_INBOX" in done.err
    for more in ((), ("--once",)):
        done = cli("extracts", "watch", str(inbox / "missing"), *more)
        assert (done.code, done.error()) == (1, f"the inbox {inbox}/missing does not exist")


def test_another_watcher_is_exit_code_3(cli: Cli, inbox: Path) -> None:
    cli.data.mkdir()
    with exclusive(cli.data / "inbox.lock") as held:
        assert held
        done = cli("extracts", "watch", str(inbox), "--once")
    assert (done.code, done.error().startswith("another watcher is at work on ")) == (3, True)


@contextmanager
def watching(inbox: Path, data: Path) -> Iterator["subprocess.Popen[str]"]:
    env = environment(data, inbox_quiet=0.5)
    command = [sys.executable, "-m", "service", "extracts", "watch", str(inbox), "--json"]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_it_runs_until_it_is_stopped(inbox: Path, tmp_path: Path) -> None:
    with watching(inbox, tmp_path / "data") as process:
        assert said_until(process, "watching") == ["watching"]
        write_drop(inbox / "2026-10")
        assert said_until(process, "published") == ["arriving", "publishing", "published"]
        assert list(inbox.glob("published/2026-10-*/2026-10"))
        process.send_signal(signal.SIGTERM)
        assert said_until(process, "stopped") == ["stopped"]
        assert process.wait(5) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_other_signals_end_it_as_well(inbox: Path, tmp_path: Path, number: int) -> None:
    with watching(inbox, tmp_path / "data") as process:
        assert said_until(process, "watching") == ["watching"]
        process.send_signal(number)
        assert said_until(process, "stopped") == ["stopped"]
        assert process.wait(5) == 0
