"""The workers of an instance, with something else in place of their processes."""

import asyncio
import socket
from typing import Any

import pytest

from config.settings import Settings
from service.base.ipc import Endpoints, Orders, WorkerReport
from service.instance import silence as silence_module
from service.instance import workers as workers_module
from service.instance.forks import Forks
from service.instance.silence import Silence, ThreadSample
from service.instance.worker_process import WorkerProcess
from service.instance.workers import Workers
from tests.service.operators.test_state import WELL
from tests.support.waiting import eventually


class InTheKernel:
    """A worker; if it `hangs`, no signal ends it before `gone` is set."""

    given_up, starved, hung_seconds = False, False, 0.0

    def __init__(self, pid: int, *, hangs: bool, report: WorkerReport | None) -> None:
        self.pid, self.hangs, self.report = pid, hangs, report
        self.silence = Silence()
        self.gone = asyncio.Event()

    def look(self) -> None:
        if self.hangs:
            self.silence.look(asyncio.get_running_loop().time(), ThreadSample("D", 1, 2, 3))

    def give_up(self) -> None:
        self.given_up = True

    def signal(self, _: int) -> None:
        if not self.hangs:
            self.gone.set()

    async def wait_for_exit(self) -> str:
        await self.gone.wait()
        return "signal 9"


@pytest.mark.parametrize(
    ("report", "ended", "problem"),
    [
        (WELL, "ended (killed, but has not exited yet, because it did not respond: waiting for a disk for", None),
        (None, "ended before it served (killed, but has not exited yet, because it did not", "it did not respond: w"),
    ],
    ids=["serving", "starting"],
)
async def test_a_worker_that_cannot_be_killed_is_replaced_all_the_same(
    report: WorkerReport | None,
    ended: str,
    problem: str | None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    started: list[Any] = []

    async def start(*_: object) -> Any:
        started.append(InTheKernel(len(started), hangs=not started, report=report))
        return started[-1]

    monkeypatch.setattr(WorkerProcess, "start", start)
    monkeypatch.setattr(workers_module, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(workers_module, "_DEATH_SECONDS", 0.01)
    monkeypatch.setattr(silence_module, "_HANGS_SECONDS", 0.05)
    workers = Workers(1, lambda: None, Forks())
    orders = Orders(Settings(data_dir="/nowhere"), Endpoints("", "", b""), log_json=False)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        workers.start(orders, listening)
        await eventually(lambda: workers.all == started and len(started) == 2)
        started[0].gone.set()
        await eventually(lambda: workers.all == started[1:])
        await workers.stop(0)
    assert "worker 0 does not respond (waiting for a disk" in caplog.text
    assert f"worker 0 {ended}" in caplog.text
    assert (problem or "") in (workers.start_problem or "")
    assert workers.restarts == 1


class Counted(Workers):
    """Two workers, of which the test says how many serve."""

    count = 0

    def __init__(self) -> None:
        super().__init__(2, lambda: None, Forks())

    @property
    def serving(self) -> int:
        return self.count


async def test_an_instance_is_ready_when_all_workers_serve() -> None:
    workers = Counted()
    ready = asyncio.create_task(workers.wait_until_ready())
    for workers.count in (0, 1):
        await asyncio.sleep(2 * workers_module._WAIT_SECONDS)
        assert not ready.done()
    workers.count = 2
    await ready


async def test_a_worker_that_cannot_start_does_not_delay_it_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers_module, "_PATIENCE_SECONDS", 0.01)
    workers = Counted()
    ready = asyncio.create_task(workers.wait_until_ready())
    await asyncio.sleep(2 * workers_module._WAIT_SECONDS)
    assert not ready.done()  # none serves
    workers.count = 1
    await ready
