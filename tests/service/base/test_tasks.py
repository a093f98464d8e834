"""Background tasks: they outlive failures, are held until they are done, and end when they are told to."""

import asyncio

import pytest

from service.base import tasks
from service.base.tasks import end_task, failures, hold_until_done, keep_running
from tests.support.waiting import PATIENCE, eventually


async def test_a_task_outlives_its_failures(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(tasks, "AFTER_FAILURE_SECONDS", 0.001)
    calls = 0

    async def act() -> float:
        nonlocal calls
        calls += 1
        if calls <= 5:
            raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
        if calls == 6:
            raise RuntimeError("another")
        return 0.001

    before = failures["a watcher"]
    task = keep_running("a watcher", act)
    await eventually(lambda: calls > 10)
    assert failures["a watcher"] - before == 6
    assert len(caplog.records) == 2
    assert all("a watcher" in record.getMessage() for record in caplog.records)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_stopped_task_ends_after_its_call() -> None:
    stopping = asyncio.Event()
    calls = 0

    async def act() -> float:
        nonlocal calls
        calls += 1
        await asyncio.sleep(0)
        return 3600.0

    task = keep_running("a watcher", act, stopping=stopping)
    await eventually(lambda: calls == 1)
    stopping.set()
    await asyncio.wait_for(task, PATIENCE)
    assert calls == 1


async def test_a_task_is_held_until_it_is_done() -> None:
    tasks: set[asyncio.Task[None]] = set()
    go_on = asyncio.Event()

    async def work(fails: bool) -> None:
        await go_on.wait()
        if fails:
            raise RuntimeError("a defect")

    started = [hold_until_done(asyncio.create_task(work(fails)), tasks) for fails in (False, True)]
    assert tasks == set(started)
    go_on.set()
    await asyncio.gather(*started, return_exceptions=True)
    assert tasks == set()


async def test_a_task_that_swallows_a_cancellation_is_cancelled_again() -> None:
    swallowed = 0

    async def stubborn() -> None:
        nonlocal swallowed
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                swallowed += 1
                if swallowed == 3:
                    raise

    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    await asyncio.wait_for(end_task(task), PATIENCE)
    assert (swallowed, task.cancelled()) == (3, True)


async def test_no_task_has_ended_already() -> None:
    await end_task(None)
