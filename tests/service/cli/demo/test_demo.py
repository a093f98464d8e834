"""The demo, as a newcomer and the three users see it."""

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.instance import SHORT_DRAIN, children_of, environment, forecast, is_alive
from tests.support.waiting import PATIENCE, until


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One data folder for all tests here: making the drops takes seconds."""
    return environment(tmp_path_factory.mktemp("demo"), workers=1, log_level="warning", drain=SHORT_DRAIN)


@contextmanager
def demo(env: dict[str, str]) -> Iterator[tuple["subprocess.Popen[bytes]", dict[str, Any]]]:
    """A running demo and the lines that it printed."""
    folder = Path(env["FORECAST_DATA_DIR"])
    printed, said = folder / "printed", folder / "said"
    with printed.open("wb") as out, said.open("wb") as err:
        process = subprocess.Popen([sys.executable, "-m", "service", "demo", "--json"], env=env, stdout=out, stderr=err)
        try:
            until(lambda: printed.read_text().endswith("}\n") or process.poll() is not None)
            yield process, json.loads(printed.read_text())
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE)


def url_and_key(lines: dict[str, Any]) -> tuple[str, str]:
    line = lines["ask"][0][1]
    match = re.fullmatch(r"curl -s -H 'x-api-key: (\S+)' '(\S+)'", line)
    assert match is not None
    return match[2], match[1]


def test_the_printed_lines_work_and_say_that_the_figures_are_made_up(env: dict[str, str]) -> None:
    """Places and projects answer 200, the error helps; index, manifest and lines are marked illustrative."""
    with demo(env) as (_, lines):
        for (_, line), status in zip(lines["ask"], (200, 200, 200, 404), strict=True):
            key, url = re.findall(r"'(?:x-api-key: )?(\S+?)'", line)
            assert httpx.get(url, headers={"x-api-key": key}).status_code == status
        url, key = url_and_key(lines)
        index = httpx.get(url.partition("/v1/")[0] + "/v1/", headers={"x-api-key": key}).json()
        assert (lines["illustrative"], index["release"]["illustrative"]) == (True, True)
        assert "made up" in " ".join(index["attribution"])
        page = httpx.get(lines["documentation"])
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        until(lambda: httpx.get(f"{lines['operators']}/health/ready").json()["status"] == "ready")
    shown = json.loads(forecast(env, "extracts", "show", "--json").stdout)
    assert shown["manifest"]["illustrative"] is True
    assert 41_000 < shown["manifest"]["zip_codes"] < 43_000


def test_the_second_start_is_quick_and_prints_the_same_lines(env: dict[str, str]) -> None:
    """Nothing is made again: the key, the drops and the release are kept."""
    with demo(env) as (_, first):
        pass
    with demo(env) as (_, second):
        assert second == first
        url, key = url_and_key(second)
        assert httpx.get(url, headers={"x-api-key": key}).status_code == 200
    mode = (Path(env["FORECAST_DATA_DIR"]) / "demo" / "key").stat().st_mode & 0o777
    assert mode == 0o600


def test_the_data_engineers_lines_publish_refuse_and_roll_back(env: dict[str, str]) -> None:
    """While it serves: the newer drop goes live, the bad one is refused with all its mistakes, and back it goes."""
    with demo(env) as (_, lines):
        url, key = url_and_key(lines)

        def served() -> str:
            return str(httpx.get(url, headers={"x-api-key": key}).headers["x-data-release"])

        first = served()
        second_drop, bad_drop = (line.split()[-1] for _, line in lines["publish"][:2])
        published = forecast(env, "extracts", "publish", second_drop)
        assert published.returncode == 0, published.stderr
        assert served() == published.stdout.strip() != first
        refused = forecast(env, "extracts", "publish", bad_drop, "--json")
        rules = {finding["rule"] for finding in json.loads(refused.stdout)["findings"]}
        assert refused.returncode == 1
        assert {"missing-figure", "duplicate-key", "out-of-range"} <= rules
        assert served() == published.stdout.strip()
        assert forecast(env, "extracts", "rollback").stdout.strip() == first == served()


def test_a_busy_port_moves_on_and_says_so(env: dict[str, str]) -> None:
    """The next free port is used, and the person is told."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        busy = taken.getsockname()[1]
        with demo({**env, "FORECAST_LISTEN_PORT": str(busy)}) as (_, lines):
            url, key = url_and_key(lines)
            assert httpx.URL(url).port != busy
            assert httpx.get(url, headers={"x-api-key": key}).status_code == 200
            assert f"port {busy} is busy" in (Path(env["FORECAST_DATA_DIR"]) / "said").read_text()


def test_ctrl_c_leaves_nothing_running_and_no_socket(env: dict[str, str]) -> None:
    """Workers and embedded servers are gone, and so are their sockets, soon after the interrupt."""
    with demo(env) as (process, _):
        children = children_of(process.pid)
        sockets = [argument for pid in children for argument in _command(pid) if argument.startswith("unixsocket:")]
        assert len(children) == 3, "one worker, two servers"
    until(lambda: not any(is_alive(pid) for pid in children))
    assert process.returncode == 0
    for named in sockets:
        assert not Path(named.removeprefix("unixsocket:")).exists()


def _command(pid: int) -> list[str]:
    try:
        return re.split(r"[\0 ]", Path(f"/proc/{pid}/cmdline").read_text())
    except OSError:
        return []
