"""`forecast top`: live in a terminal, a line a second into a pipe, through restarts of the instance."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import threading
from pathlib import Path

import pytest
from rich.console import Console

from config.settings import Settings
from service.cli.status import top
from service.cli.status.live import Watch, live_screen
from service.operators.overview import Ranked, Rankings
from tests.service.cli.conftest import HERE, Start
from tests.service.conftest import Cli
from tests.support.instance import environment
from tests.support.listener import listening
from tests.support.overviews import NOW, RELEASE, overview
from tests.support.waiting import until


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top, "_EVERY_SECONDS", 0.001)


@pytest.fixture
def watch(cli: Cli) -> Watch:
    return Watch(Settings(data_dir=str(cli.data)), None)


def shown(watch: Watch, height: int = 24, now: float = NOW, width: int = 80) -> list[str]:
    """The lines of the screen."""
    console = Console(width=width, height=height)
    lines = console.render_lines(live_screen(watch, console, now), pad=False)
    return ["".join(segment.text for segment in line).rstrip() for line in lines]


def test_a_pipe_gets_a_line_or_an_object_for_each_update(cli: Cli, start: Start, quick: None) -> None:
    start(overview())
    done = cli("top", "--count", "3")
    assert (done.code, done.err) == (0, "")
    heading, *lines = done.out.splitlines()
    assert heading.split() == ["UTC", "instance", "verdict", "requests", "5xx", "hit", "rate", "p50", "p99", "release"]
    expected = ["14:13:20", "3f9c20d1", "ok", "771/s", "0/s", "98.97%", "0.2", "ms", "1.1", "ms", RELEASE]
    assert [line.split() for line in lines] == [expected] * 3
    start(overview(), pid=4811)
    documents = [json.loads(line) for line in cli("top", "--count", "2", "--json").out.splitlines()]
    assert [(one["level"], len(one["instances"])) for one in documents] == [("ok", 2)] * 2


def test_an_instance_that_cannot_be_asked_does_not_end_it(cli: Cli, start: Start, quick: None) -> None:
    done = cli("top", "--count", "2")
    assert done.code == 0
    assert done.out.count(f"no instance runs on {cli.data}") == 2
    start(overview()).refuse(401, "missing_token")
    done = cli("top", "--count", "2")
    assert done.code == 0
    assert done.out.count(f"instance 4711 on {HERE} is unreachable: ") == 2


def test_the_screen_is_as_high_as_the_terminal_at_most(watch: Watch, start: Start) -> None:
    ranked = tuple(Ranked(f"forecast zip:{number}", 1000 - number, 0, "x" * 50) for number in range(20))
    names = ("queries", "missed", "unknown", "keys", "limited", "refused")
    rankings = Rankings(seconds=60, **dict.fromkeys(names, ranked))
    start(overview(rankings=rankings, events=overview().events * 9))
    watch.look()
    for height in (24, 30, 60):
        lines = shown(watch, height)
        assert len(lines) <= height
        assert lines[-1].endswith("q or Ctrl-C ends")
        assert "zip:0" in " ".join(lines)


def test_the_screen_has_the_essentials(watch: Watch, start: Start) -> None:
    start(overview())
    watch.look()
    lines = shown(watch, 40)
    said = "\n".join(" ".join(line.split()) for line in lines)
    assert lines[0].startswith("All is well.")
    for part in (
        "hit rate 98.97% 99.00% 95.00% requests 771/s 812/s 790/s",
        "most requested",
        "9,000 forecast zip_code=90210",
        "12 forecast zip_code=99950",
        "9,800 acme",
        f"12:13:20 release {RELEASE} is current",
    ):
        assert part in said


def test_on_a_narrow_terminal_labels_and_figures_stay_whole(watch: Watch, start: Start) -> None:
    start(overview())
    watch.look()
    lines = shown(watch, width=60)
    rows = [line.split() for line in lines[2:8]]
    assert rows[0] == ["1", "s", "1", "min", "1", "s", "1", "min"]
    assert rows[1] == ["hit", "rate", "98.97%", "99.00%", "requests", "771/s", "812/s"]
    assert rows[4][0] == "warehouse"


def test_a_restart_is_waited_for(watch: Watch, start: Start, cli: Cli) -> None:
    watch.look()
    assert shown(watch)[0].startswith("Unreachable since ")
    first = start(overview())
    watch.look()
    assert shown(watch)[0].startswith("All is well.")
    first.refuse(503, "unavailable", "The instance is starting. Try again.")
    watch.look()
    assert watch.unreachable_since is not None
    lines = shown(watch, 40, watch.unreachable_since + 5)
    assert lines[0].startswith("Unreachable since ")
    assert ", 5 seconds: " in " ".join(lines[:2])
    assert "The figures below are of 14:13:20 UTC." in lines
    first.recover()
    watch.look()
    assert shown(watch)[0].startswith("All is well.")


def test_the_next_instance_is_shown_on_demand(watch: Watch, start: Start) -> None:
    start(overview(), pid=4711)
    start(overview(rankings=Rankings(seconds=0.0), at=NOW + 1), pid=4811)
    watch.look()
    assert watch.seen == overview()
    for expected in (NOW + 1, NOW):
        watch.show_next()
        watch.look()
        assert watch.seen is not None
        assert watch.seen.at == expected
    assert "Tab: the next of 2 instances" in shown(watch)[-1]


@pytest.mark.parametrize("end", ["q", "SIGINT", "SIGTERM"])
def test_a_terminal_is_left_as_it_was(tmp_path: Path, end: str) -> None:
    outer, inner = pty.openpty()
    before = termios.tcgetattr(inner)
    with listening() as listener:
        listener.answer("/overview", overview())
        env = environment(tmp_path) | {"TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
        command = [sys.executable, "-m", "service", "top", "--url", listener.url]
        process = subprocess.Popen(command, env=env, stdin=inner, stdout=inner, stderr=inner)
        out = _Out(outer)
        until(lambda: b"All is well." in out.data)
        assert termios.tcgetattr(inner)[3] != before[3]
        if end == "q":
            os.write(outer, b"q")
        else:
            process.send_signal(signal.Signals[end])
        assert process.wait(60) == 0
    assert termios.tcgetattr(inner) == before
    os.close(inner)
    out.thread.join()
    assert out.data.startswith(b"\x1b[?1049h")
    assert b"\x1b[?1049l" in out.data[-20:]


class _Out:
    """What a terminal receives, until its other end closes."""

    def __init__(self, descriptor: int) -> None:
        self.data = b""
        self._descriptor = descriptor
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # how a terminal's end is told
            while found := os.read(self._descriptor, 1 << 16):
                self.data += found
        os.close(self._descriptor)


def test_an_unreachable_key_store_writes_nothing_over_the_screen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The screen says so itself."""
    watch = Watch(Settings(data_dir=str(tmp_path), keys_url="unix:///nowhere"), None)
    watch.look()
    assert watch.problem
    assert capsys.readouterr() == ("", "")
