"""Workers that do not respond are replaced; new connections are answered meanwhile, or by the successor."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.faults.conftest import Site
from tests.faults.test_hanging import reasons
from tests.support.hangs import Hanging
from tests.support.instance import FORECAST, Instance, is_alive, serving
from tests.support.waiting import PATIENCE, until


@pytest.fixture
def hanging(published: Site, short: Path) -> Hanging:
    return Hanging(published.env, short / "hanging")


@pytest.fixture(scope="module")
def pair(common: Site) -> Iterator[Instance]:
    """Two workers that serve, and that are replaced by two others in each test."""
    folder = common.data.parent
    with serving(Hanging(common.env, folder / "hanging").env, folder / "serve.log", workers=2) as instance:
        until(lambda: len(serving_pids(instance)) == 2)
        yield instance


def serving_pids(instance: Instance) -> list[int]:
    """Of all workers, if as many serve as should."""
    whole = instance.metric("forecast_workers") == instance.metric("forecast_workers_wanted")
    return instance.worker_pids() if whole else []


def given_up(instance: Instance) -> dict[int, str]:
    """What the log says the workers did that were replaced because they did not respond."""
    form = re.compile(r"worker (\d+) does not respond \((.*) for [\d.]+ s\)")
    reported = (form.match(line["message"]) for line in instance.log())
    return {int(one[1]): one[2] for one in reported if one is not None}


def test_a_worker_that_hangs_is_replaced_and_the_other_takes_new_connections(pair: Instance, common: Site) -> None:
    """Whatever it hangs in. What it had accepted ends with it: no request waits for an answer that never comes."""
    hanging = {signal.SIGSTOP: "stopped", signal.SIGRTMIN: "waiting for something else", signal.SIGRTMAX: "busy"}
    reported = given_up(pair)
    restarts = pair.metric("forecast_worker_restarts_total")
    for number, (fault, doing) in enumerate(hanging.items(), start=1):
        hung, _ = pair.worker_pids()
        reported[hung] = doing
        os.kill(hung, fault)
        until(lambda: outcome(pair, common.key) == 200)
        until_replaced(pair, hung)
        assert pair.metric("forecast_worker_restarts_total") == restarts + number
    assert given_up(pair) == reported


def until_replaced(instance: Instance, pid: int) -> None:
    until(lambda: not is_alive(pid) and len(serving_pids(instance)) == 2)


def outcome(instance: Instance, key: str) -> int | None:
    """The status of a request on a connection of its own; None if it was accepted by a worker that ended."""
    try:
        return instance.zip_code(key).status_code
    except httpx.TransportError:
        return None


def test_when_all_hang_who_waits_is_answered_by_a_successor(pair: Instance, common: Site) -> None:
    """A connection that no worker has accepted waits in the kernel, and belongs to all of them."""
    before, reported = pair.worker_pids(), given_up(pair)
    for pid in before:
        os.kill(pid, signal.SIGSTOP)
    assert pair.get(FORECAST, common.key, zip_code="36436", timeout=PATIENCE).status_code == 200
    for pid in before:
        until_replaced(pair, pid)
    assert given_up(pair) == reported | dict.fromkeys(before, "stopped")
    until(lambda: pair.ready().json()["status"] == "ready")


def test_a_worker_that_hangs_while_it_drains_does_not_hold_up_the_stop(hanging: Hanging, short: Path) -> None:
    """It is not replaced any more; the stop does not take the drain time, which is not needed."""
    with serving(hanging.env | {"FORECAST_DRAIN": "60"}, short / "serve.log") as instance:
        until(lambda: len(serving_pids(instance)) == 1)
        (hung,) = instance.worker_pids()
        os.kill(hung, signal.SIGRTMIN)
        assert instance.stop() == 0
        assert given_up(instance) == {hung: "waiting for something else"}


def test_a_worker_that_hangs_at_its_start_is_replaced_like_any_other(pair: Instance, common: Site) -> None:
    """Meanwhile the other serves, and readiness says so."""
    (first, other), reported = pair.worker_pids(), given_up(pair)
    os.kill(first, signal.SIGKILL)

    def successors() -> set[int]:
        return set(pair.descendants("forecast-worker")) - {first, other}

    until(lambda: bool(successors()))
    (starting,) = successors()
    os.kill(starting, signal.SIGSTOP)
    until(lambda: "1 of 2 workers serve" in reasons(pair))
    assert pair.zip_code(common.key).status_code == 200
    until_replaced(pair, starting)
    assert given_up(pair) == reported | {starting: "stopped"}
    assert other in pair.worker_pids()
