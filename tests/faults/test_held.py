"""Drops that wait for a person, in a running instance: whoever dies in the middle, a drop is whole and in one place."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.conftest import Site
from tests.faults.test_inbox import Env, figure, moments, put, watchers
from tests.support.instance import Instance, children_of, forecast_here, is_alive, serving
from tests.support.waiting import until
from warehouse.releases.catalog import Catalog


@pytest.fixture(scope="module")
def inbox(common: Site) -> Path:
    folder = common.data.parent / "inbox"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def reported(common: Site) -> Path:
    """A file for what the command of the inbox was told last."""
    return common.data.parent / "reported"


@pytest.fixture(scope="module")
def env(common: Site, inbox: Path, reported: Path) -> Env:
    """Every drop that changes a figure is held."""
    program = "import os, sys; open(sys.argv[1], 'w').write(os.environ['DROP_RESULT'])"
    command = f'{sys.executable} -c "{program}" {reported}'
    ours = {"FORECAST_INBOX": str(inbox), "FORECAST_INBOX_HOLD": "changed-figures"}
    return common.env | ours | {"FORECAST_INBOX_ON_REFUSAL": command}


@pytest.fixture(scope="module")
def holding(common: Site, env: Env) -> Iterator[Instance]:
    """An instance whose watcher may be killed, for tests that leave no drop held."""
    with serving(env, common.data.parent / "serve.log") as instance:
        yield instance


def places(inbox: Path, name: str) -> list[str]:
    """Where the drop lies; whole, or the test fails. Raises FileNotFoundError if it is moved meanwhile."""
    found = [path for path in (*inbox.glob(f"*/*/{name}"), *inbox.glob(f".claimed/*/{name}")) if path.is_dir()]
    for path in found:
        assert (path / "zip_population.parquet").read_bytes()[-4:] == b"PAR1"
        (path / "_SUCCESS").stat()
    return [path.parent.parent.name for path in found]


def held(instance: Instance, inbox: Path, name: str, population: int) -> None:
    put(inbox, name, population)
    until(lambda: places(inbox, name) == ["held"])
    until(lambda: instance.metric("forecast_inbox_held") == 1)


def approving(env: Env, name: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "service", "extracts", "approve", name, "--reason", "seen", "--over-newer"]
    return subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_a_held_drop_is_shown_to_operators_until_it_is_approved(
    common: Site, env: Env, holding: Instance, inbox: Path, reported: Path
) -> None:
    until(lambda: holding.ready().json()["status"] == "ready")
    before, counted = figure(holding, common), holding.metric("forecast_inbox_published_total")
    reported.unlink(missing_ok=True)
    held(holding, inbox, "2026-10", 1001)
    until(lambda: "1 drop waits for approval" in "; ".join(holding.ready().json().get("reasons", ())))
    assert holding.ready().json()["status"] == "degraded"
    assert holding.ready().status_code == 200, "a balancer goes on sending to it"
    assert 0 < holding.metric("forecast_inbox_held_oldest_age_seconds") < 600
    until(lambda: reported.exists() and reported.read_text() == "held")
    assert figure(holding, common) == before
    done = forecast_here(env, "extracts", "approve", "2026-10", "--reason", "seen")
    assert done.returncode == 0, done.stderr
    assert figure(holding, common) == 1001
    (approval,) = json.loads(forecast_here(env, "log", "--what", "approved", "--json").stdout)
    assert (approval["via"], approval["reason"]) == ("command", "seen")
    until(lambda: holding.ready().json()["status"] == "ready")
    assert holding.metric("forecast_inbox_held") == holding.metric("forecast_inbox_held_oldest_age_seconds") == 0
    assert holding.metric("forecast_inbox_published_total") == counted + 1
    approved = "2026-10 was approved by"
    until(lambda: any(approved in line["message"] for line in holding.log()))
    (line,) = [line for line in holding.log() if approved in line["message"]]
    assert line["event"] == "approved"
    assert line["message"].endswith(": seen")


def _kill_at(moment: Callable[[], bool], process: "subprocess.Popen[bytes]") -> bool:
    """Kills the process when the moment comes; returns False if it ended before: the moments last milliseconds."""
    while not moment():
        if process.poll() is not None:
            return False
        time.sleep(0.0005)
    readers = children_of(process.pid)
    process.kill()
    process.wait()
    until(lambda: not any(map(is_alive, readers)))
    return True


def test_a_killed_approval_leaves_the_drop_whole_and_in_one_place(
    common: Site, env: Env, holding: Instance, inbox: Path
) -> None:
    """Held, or published; partners see the old release or the new one. The same command completes it."""
    met = number = 0
    while met < 3:
        number += 1
        assert number < 30, "the moments cannot be met"
        name = f"drop-{number:02}"
        before = figure(holding, common)
        held(holding, inbox, name, 3000 + number)
        met += _kill_at(moments(inbox, common.data)[1 + met], approving(env, name))  # it is claimed already
        (place,) = places(inbox, name)
        assert place in ("held", "published")
        assert figure(holding, common) in (before, 3000 + number)
        if place == "held":
            done = forecast_here(env, "extracts", "approve", name, "--reason", "seen", "--over-newer")
            assert done.returncode == 0, done.stderr
        assert places(inbox, name) == ["published"]
        until(lambda: figure(holding, common) == 3000 + number)  # noqa: B023 - done with in this turn
        until(lambda: holding.metric("forecast_inbox_held") == 0)
    catalog = Catalog(common.data)
    assert list(catalog.staging.iterdir()) == []
    for release in catalog.names():
        catalog.verify(catalog.manifest(release))
    acceptance = catalog.current().acceptance
    assert acceptance is not None
    assert acceptance.reason == "seen"


def test_a_watcher_that_dies_while_a_drop_is_approved_or_held_loses_nothing(
    common: Site, env: Env, holding: Instance, inbox: Path
) -> None:
    """The approval is another process, and goes on; a drop on its way to held/ is held by the next watcher."""
    until(lambda: len(watchers(holding)) == 1)
    held(holding, inbox, "older", 4001)
    approval = approving(env, "older")
    until(lambda: any(common.data.glob("staging/*")) or approval.poll() is not None)
    (pid,) = watchers(holding)
    os.kill(pid, signal.SIGKILL)
    assert approval.wait(60) == 0
    assert places(inbox, "older") == ["published"]
    until(lambda: figure(holding, common) == 4001)
    until(lambda: len(watchers(holding)) == 1)
    (pid,) = watchers(holding)
    put(inbox, "newer", 4002)
    until(lambda: any(inbox.glob(".claimed/*/newer")) or places(inbox, "newer") == ["held"])
    os.kill(pid, signal.SIGKILL)
    until(lambda: places(inbox, "newer") == ["held"])
    until(lambda: holding.metric("forecast_inbox_held") == 1)
    assert figure(holding, common) == 4001
    done = forecast_here(env, "extracts", "discard", "newer", "--reason", "tried")
    assert done.returncode == 0, done.stderr
    until(lambda: holding.metric("forecast_inbox_held") == 0)


def test_a_drop_that_does_not_come_is_a_reason_in_health(published: Site, short: Path) -> None:
    """It takes no instance out of the balancer, and partners are answered."""
    env = published.env | {"FORECAST_DROP_EVERY": "1s"}
    with serving(env, short / "serve.log") as instance:
        until(lambda: "The next drop is overdue by" in "; ".join(instance.ready().json().get("reasons", ())))
        assert instance.ready().json()["status"] == "degraded"
        assert instance.ready().status_code == 200
        assert instance.metric("forecast_drop_overdue_seconds") > 0
        assert instance.metric("forecast_last_drop_age_seconds") > 1
        assert instance.zip_code(published.key).status_code == 200
