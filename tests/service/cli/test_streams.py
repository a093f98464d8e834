"""Standard streams that are closed, full or broken by whoever starts a command."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.conftest import servers_of
from tests.support.instance import SHORT_DRAIN, children_of, environment, forecast, issue_key
from tests.support.waiting import until

FORECAST = [sys.executable, "-m", "service"]
FULL, CLOSED = Path("/dev/full"), ">&-"


def redirected(env: dict[str, str], how: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """Runs a command from a shell that redirects its streams."""
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {how}', "sh", *FORECAST, *words], env=env, capture_output=True, text=True, check=False
    )


@pytest.fixture
def env(short: Path) -> dict[str, str]:
    return environment(short / "data", drain=SHORT_DRAIN)


@pytest.mark.parametrize("path", [(), ("demo",), ("requests", "sample")], ids=lambda path: " ".join(path) or "forecast")
def test_help_that_cannot_be_printed_is_an_error(env: dict[str, str], path: tuple[str, ...]) -> None:
    """A few commands are enough: one function prints all help."""
    words = (*path, "--help")
    done = forecast(env, *words, to=FULL) if len(path) > 1 else redirected(env, ">/dev/full", *words)
    assert (done.returncode, done.stderr) == (1, "forecast: standard output: No space left on device\n")


@pytest.mark.parametrize(("how", "why"), [(CLOSED, "it is closed"), (">/dev/full", "No space left on device")])
@pytest.mark.parametrize(
    "words",
    [("--version",), ("config", "--json"), ("extracts", "list"), ("keys", "export", "-"), ("top", "--count", "1")],
    ids=" ".join,
)
def test_output_that_cannot_be_written_is_one_line(
    env: dict[str, str], how: str, why: str, words: tuple[str, ...]
) -> None:
    if words[0] == "keys":
        issue_key(env)
    done = redirected(env, how, *words) if how == CLOSED else forecast(env, *words, to=FULL)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"forecast: standard output: {why}"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("how", [">&-", ">/dev/full"])
def test_a_command_that_failed_says_so_and_no_more(env: dict[str, str], how: str) -> None:
    done = redirected(env, how, "status", "--json")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    done = redirected(env, how, "nonsense")
    assert done.returncode == 2
    assert "No such command" in done.stderr.splitlines()[-1]


def test_a_command_needs_neither_input_nor_standard_error(env: dict[str, str]) -> None:
    for words in (("config",), ("config", "--nonsense"), ("keys", "show", "0B1zQmX4ktLw")):
        usual = forecast(env, *words)
        for how in ("2>/dev/full", "<&- 2>&-"):
            done = redirected(env, how, *words)
            assert (done.returncode, done.stdout) == (usual.returncode, usual.stdout)


def test_input_that_is_closed_is_named(env: dict[str, str]) -> None:
    done = redirected(env, "<&-", "keys", "import", "-")
    assert (done.returncode, done.stderr) == (1, "forecast: standard input: it is closed\n")


def test_a_reader_that_has_gone_is_no_error(env: dict[str, str]) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        [*FORECAST, "config", "--json"], env=env, stdout=theirs, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(theirs)
    assert (done.returncode, done.stderr) == (1, "")


@contextlib.contextmanager
def serving(env: dict[str, str], how: str, *words: str) -> "Iterator[subprocess.Popen[bytes]]":
    command = [*FORECAST, "serve", "--port", "0", "--operator-port", "0", "--workers", "1", *words]
    with subprocess.Popen(["sh", "-c", f'exec "$@" {how}', "sh", *command], env=env) as process:
        try:
            until(lambda: bool(list(Path(env["FORECAST_DATA_DIR"]).glob("instances/*.json"))))
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("how", ["2>&-", "<&- >&- 2>&-", ">/dev/full 2>/dev/full"])
def test_an_instance_serves_whatever_its_streams_are(env: dict[str, str], how: str) -> None:
    """None of its processes has a socket or a file for a stream, and a clean stop is exit code 0."""
    with serving(env, how) as process:
        until(lambda: len(children_of(process.pid)) >= 2)
        servers = servers_of(Path(env["FORECAST_DATA_DIR"]))
        for pid in (process.pid, *children_of(process.pid), *servers):
            for descriptor, closed in enumerate(("<&-", ">&-", "2>&-")):
                if f" {closed}" in f" {how}":
                    assert str(Path(f"/proc/{pid}/fd/{descriptor}").readlink()) == "/dev/null"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


@pytest.mark.parametrize("how", [">&-", ">/dev/full"])
def test_an_instance_whose_addresses_cannot_be_printed_serves_and_then_says_so(env: dict[str, str], how: str) -> None:
    with serving(env, how, "--json") as process:
        until(lambda: '"releases":[null]' in next(Path(env["FORECAST_DATA_DIR"]).glob("instances/*.json")).read_text())
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 1
