"""Drops that wait for a person, in a running instance: whoever dies in the middle, a drop is whole and in one place."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.conftest import Site
from tests.faults.test_inbox import Env, figure, put, watchers
from tests.support.instance import Instance, children_of, forecast_here, is_alive, serving
from tests.support.waiting import until
from warehouse.releases.catalog import Catalog


@pytest.fixture
def inbox(short: Path) -> Path:
    folder = short / "inbox"
    folder.mkdir()
    return folder


@pytest.fixture
def env(published: Site, inbox: Path) -> Env:
    """Every drop that changes a figure is held."""
    return {**published.env, "FORECAST_INBOX": str(inbox), "FORECAST_INBOX_HOLD": "changed-figures"}


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


def test_a_held_drop_is_told_to_operators_until_it_is_approved(
    published: Site, env: Env, inbox: Path, short: Path
) -> None:
    """Health and metrics, the command, and the log of the instance, which names who approved it and why."""
    told = short / "told"
    program = "import os, sys; open(sys.argv[1], 'w').write(os.environ['DROP_RESULT'])"
    env["FORECAST_INBOX_ON_REFUSAL"] = f'{sys.executable} -c "{program}" {told}'
    with serving(env, short / "serve.log") as instance:
        before = figure(instance, published)
        held(instance, inbox, "2026-10", 1001)
        until(lambda: instance.ready().json()["status"] == "degraded")
        assert instance.ready().status_code == 200, "a balancer goes on sending to it"
        assert "1 drop waits for approval" in instance.ready().json()["reasons"][0]
        assert 0 < instance.metric("forecast_inbox_held_oldest_age_seconds") < 600
        until(lambda: told.exists() and told.read_text() == "held")
        assert figure(instance, published) == before
        done = forecast_here(env, "extracts", "approve", "2026-10", "--reason", "seen")
        assert done.returncode == 0, done.stderr
        assert figure(instance, published) == 1001
        until(lambda: instance.ready().json()["status"] == "ready")
        assert instance.metric("forecast_inbox_held") == instance.metric("forecast_inbox_held_oldest_age_seconds") == 0
        assert instance.metric("forecast_inbox_published_total") == 1
        until(lambda: any(line.get("event") == "approved" for line in instance.log()))
    (line,) = [line for line in instance.log() if line.get("event") == "approved"]
    assert "2026-10 was approved by" in line["message"]
    assert line["message"].endswith(": seen")


def _moments(data: Path) -> list[Callable[[], bool]]:
    """On the way of an approval: being read, built and not current yet, current and perhaps not moved yet."""
    pointer, releases = data / "current.json", len(list((data / "releases").iterdir()))
    before = pointer.read_bytes()
    return [
        lambda: any(data.glob("staging/*/tables/*.parquet")),
        lambda: len(list((data / "releases").iterdir())) > releases,
        lambda: pointer.read_bytes() != before,
    ]


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
    published: Site, env: Env, inbox: Path, short: Path
) -> None:
    """Held, or published; partners see the old release or the new one. The same command completes it."""
    met = number = 0
    with serving(env, short / "serve.log") as instance:
        while met < 3:
            number += 1
            assert number < 30, "the moments cannot be met"
            name = f"drop-{number:02}"
            before = figure(instance, published)
            held(instance, inbox, name, 3000 + number)
            met += _kill_at(_moments(published.data)[met], approving(env, name))
            (place,) = places(inbox, name)
            assert place in ("held", "published")
            assert figure(instance, published) in (before, 3000 + number)
            if place == "held":
                done = forecast_here(env, "extracts", "approve", name, "--reason", "seen", "--over-newer")
                assert done.returncode == 0, done.stderr
            assert places(inbox, name) == ["published"]
            until(lambda: figure(instance, published) == 3000 + number)  # noqa: B023 - done with in this turn
            until(lambda: instance.metric("forecast_inbox_held") == 0)
    catalog = Catalog(published.data)
    assert list(catalog.staging.iterdir()) == []
    for release in catalog.names():
        catalog.verify(catalog.manifest(release))
    acceptance = catalog.current().acceptance
    assert acceptance is not None
    assert acceptance.reason == "seen"


def test_a_watcher_that_dies_while_a_drop_is_approved_or_held_loses_nothing(
    published: Site, env: Env, inbox: Path, short: Path
) -> None:
    """The approval is another process, and goes on; a drop on its way to held/ is held by the next watcher."""
    with serving(env, short / "serve.log") as instance:
        until(lambda: len(watchers(instance)) == 1)
        held(instance, inbox, "older", 4001)
        approval = approving(env, "older")
        until(lambda: any(published.data.glob("staging/*")) or approval.poll() is not None)
        (pid,) = watchers(instance)
        os.kill(pid, signal.SIGKILL)
        assert approval.wait(60) == 0
        assert places(inbox, "older") == ["published"]
        until(lambda: figure(instance, published) == 4001)
        until(lambda: len(watchers(instance)) == 1)
        (pid,) = watchers(instance)
        put(inbox, "newer", 4002)
        until(lambda: any(inbox.glob(".claimed/*/newer")) or places(inbox, "newer") == ["held"])
        os.kill(pid, signal.SIGKILL)
        until(lambda: places(inbox, "newer") == ["held"])
        until(lambda: instance.metric("forecast_inbox_held") == 1)
        assert figure(instance, published) == 4001


def test_a_drop_that_does_not_come_is_a_reason_in_health(published: Site, env: Env, short: Path) -> None:
    """It takes no instance out of the balancer, and partners are answered."""
    env["FORECAST_DROP_EVERY"] = "1s"
    with serving(env, short / "serve.log") as instance:
        until(lambda: instance.ready().json()["status"] == "degraded")
        answer = instance.ready()
        assert answer.status_code == 200
        assert "the next drop is overdue by" in answer.json()["reasons"][0]
        assert instance.metric("forecast_drop_overdue_seconds") > 0
        assert instance.metric("forecast_last_drop_age_seconds") > 1
        assert instance.zip_code(published.key).status_code == 200
