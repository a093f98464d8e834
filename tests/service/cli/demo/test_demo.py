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

from tests.support.instance import SHORT_DRAIN, children_of, environment, forecast, forecast_here, is_alive
from tests.support.waiting import PATIENCE, until

# As `python -m service`, with the places of some states: those of the whole country take most of a minute.
_FEW = """
import runpy
from warehouse.publishing import illustrative
whole = illustrative.read_places
illustrative.read_places = lambda: [place for place in whole() if place.state in ("AK", "AL", "IL", "MO")]
runpy.run_module("service", run_name="__main__", alter_sys=True)
"""


@pytest.fixture
def env(short: Path) -> dict[str, str]:
    """Ports of its own: the usual ones may be another demo's."""
    ports = {f"{name}_port": free_port() for name in ("listen", "operator")}
    return environment(short / "data", workers=1, log_level="warning", warm="off", drain=SHORT_DRAIN, **ports)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


@contextmanager
def demo(env: dict[str, str], *, few: bool) -> Iterator[tuple["subprocess.Popen[bytes]", dict[str, Any]]]:
    """A running demo and the lines that it printed."""
    folder = Path(env["FORECAST_DATA_DIR"])
    folder.mkdir(exist_ok=True)
    printed, said = folder / "printed", folder / "said"
    program = ["-c", _FEW] if few else ["-m", "service"]
    with printed.open("wb") as out, said.open("wb") as err:
        process = subprocess.Popen([sys.executable, *program, "demo", "--json"], env=env, stdout=out, stderr=err)
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


@pytest.mark.parametrize("few", [True, pytest.param(False, marks=pytest.mark.soak)], ids=["few states", "country"])
def test_a_demo_serves_a_newcomer_an_engineer_and_an_operator_and_starts_again(env: dict[str, str], few: bool) -> None:
    with demo(env, few=few) as (process, first):
        the_printed_lines_work(env, first)
        shown = json.loads(forecast_here(env, "extracts", "show", "--json").stdout)
        assert shown["manifest"]["illustrative"] is True
        zip_codes = shown["manifest"]["zip_codes"]
        assert (3_000 < zip_codes < 5_000) if few else (41_000 < zip_codes < 43_000)
        the_engineers_lines_publish_refuse_and_roll_back(env, first)
        children = children_of(process.pid)
        sockets = [argument for pid in children for argument in _command(pid) if argument.startswith("unixsocket:")]
    nothing_is_left_of(process, children, sockets)
    drops = sorted(Path(env["FORECAST_DATA_DIR"]).glob("demo/drops/*/*"))
    made = [path.stat().st_mtime_ns for path in drops]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        busy = taken.getsockname()[1]
        with demo({**env, "FORECAST_LISTEN_PORT": str(busy)}, few=few) as (_, second):
            a_busy_port_moves_on_and_says_so(env, second, busy)
            the_second_start_prints_the_same_lines(env, first, second)
    assert [path.stat().st_mtime_ns for path in drops] == made, "nothing is made again"


def the_printed_lines_work(env: dict[str, str], lines: dict[str, Any]) -> None:
    """Places and projects answer 200, the error helps; index, manifest and lines are marked illustrative."""
    for (_, line), status in zip(lines["ask"], (200, 200, 200, 404), strict=True):
        key, url = re.findall(r"'(?:x-api-key: )?(\S+?)'", line)
        assert httpx.get(url, headers={"x-api-key": key}).status_code == status
    url, key = url_and_key(lines)
    index = httpx.get(url.partition("/v1/")[0] + "/v1/", headers={"x-api-key": key}).json()
    assert (lines["illustrative"], index["release"]["illustrative"]) == (True, True)
    assert "made up" in " ".join(index["attribution"])
    page = httpx.get(lines["documentation"])
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    base = url.partition("/v1/")[0]
    assert base in page.text
    assert lines["variables"].startswith(f"export BASE={base} KEY={key} TEST_KEY=phf_test_")
    until(lambda: httpx.get(f"{lines['operators']}/health/ready").json()["status"] == "ready")
    view = httpx.get(lines["operate"][0][1], headers={"accept": "text/html"})
    assert (view.status_code, view.headers["content-type"]) == (200, "text/html; charset=utf-8")
    until(lambda: "All is well." in forecast_here(env, "status").stdout)


def the_engineers_lines_publish_refuse_and_roll_back(env: dict[str, str], lines: dict[str, Any]) -> None:
    """While it serves: the newer drop goes live, the bad one is refused with all its mistakes, and back it goes."""
    url, key = url_and_key(lines)

    def served() -> str:
        return str(httpx.get(url, headers={"x-api-key": key}).headers["x-data-release"])

    first = served()
    second_drop, bad_drop = (line.split()[-1] for _, line in lines["publish"][:2])
    published = forecast(env, "extracts", "publish", second_drop)
    assert published.returncode == 0, published.stderr
    until(lambda: served() == published.stdout.strip() != first)
    refused = forecast(env, "extracts", "publish", bad_drop, "--json")
    rules = {finding["rule"] for finding in json.loads(refused.stdout)["findings"]}
    assert refused.returncode == 1
    assert {"missing-figure", "duplicate-key", "out-of-range"} <= rules
    assert served() == published.stdout.strip()
    assert forecast_here(env, "extracts", "rollback").stdout.strip() == first
    until(lambda: served() == first)


def nothing_is_left_of(process: "subprocess.Popen[bytes]", children: list[int], sockets: list[str]) -> None:
    """Workers and embedded servers are gone, and so are their sockets, soon after Ctrl-C."""
    assert len(children) == 3, "one worker, two servers"
    until(lambda: not any(is_alive(pid) for pid in children))
    assert process.returncode == 0
    assert len(sockets) == 2
    for named in sockets:
        assert not Path(named.removeprefix("unixsocket:")).exists()


def a_busy_port_moves_on_and_says_so(env: dict[str, str], lines: dict[str, Any], busy: int) -> None:
    """The next free port is used, and the output says so."""
    url, key = url_and_key(lines)
    assert httpx.URL(url).port != busy
    assert httpx.get(url, headers={"x-api-key": key}).status_code == 200
    assert f"port {busy} is busy" in (Path(env["FORECAST_DATA_DIR"]) / "said").read_text()


def the_second_start_prints_the_same_lines(env: dict[str, str], first: dict[str, Any], second: dict[str, Any]) -> None:
    """The key, the drops and the release are kept; the port is another one."""
    ports = [str(httpx.URL(url_and_key(lines)[0]).port) for lines in (first, second)]
    assert json.loads(json.dumps(second).replace(ports[1], ports[0])) == first
    mode = (Path(env["FORECAST_DATA_DIR"]) / "demo" / "key").stat().st_mode & 0o777
    assert mode == 0o600


def _command(pid: int) -> list[str]:
    try:
        return re.split(r"[\0 ]", Path(f"/proc/{pid}/cmdline").read_text())
    except OSError:
        return []
