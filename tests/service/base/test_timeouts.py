"""Limits of time that bear a loop whose turns take long."""

import asyncio
import gc
import time
import weakref

import pytest

from service.base.timeouts import Alarm, within


async def test_work_that_ends_in_time_sets_no_alarm_off() -> None:
    await within(0.01, asyncio.sleep(0))
    await asyncio.sleep(0.03)


async def test_a_turn_that_takes_longer_than_the_limit_does_not_spend_it() -> None:
    rung: list[bool] = []
    alarm = Alarm(0.01, lambda: rung.append(True))
    for _ in range(3):
        time.sleep(0.02)  # noqa: ASYNC251 - a busy turn
        await asyncio.sleep(0)
    assert not rung
    alarm.cancel()
    await asyncio.sleep(0.03)
    assert not rung


async def test_work_that_waits_ends_with_what_it_returns() -> None:
    async def work() -> int:
        first = await asyncio.sleep(0.001, 1)
        return first + await asyncio.sleep(0.001, 2)

    assert await within(30, work()) == 3


@pytest.mark.parametrize("waits", [0, 1, 3])
async def test_an_error_of_the_work_is_what_is_raised(waits: int) -> None:
    async def work() -> None:
        for _ in range(waits):
            await asyncio.sleep(0.001)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await within(30, work())


async def test_work_may_catch_what_it_waited_for_in_vain() -> None:
    async def work() -> str:
        failed = asyncio.get_running_loop().create_future()
        failed.set_exception(ZeroDivisionError())
        await asyncio.sleep(0)
        try:
            await asyncio.shield(failed)
        except ZeroDivisionError:
            return await asyncio.sleep(0.001, "caught")
        return "not raised"

    assert await within(30, work()) == "caught"


async def test_work_that_does_not_end_is_cancelled_and_may_tidy_up() -> None:
    tidied: list[bool] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.001)
            tidied.append(True)

    began = time.monotonic()
    with pytest.raises(TimeoutError):
        await within(0.02, work())
    assert time.monotonic() - began >= 0.02
    assert tidied


async def test_work_is_cancelled_with_who_waits_for_it() -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    task = asyncio.create_task(within(30, work()))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cancelled.is_set()


async def test_work_leaves_nothing_to_the_garbage_collector() -> None:
    class Watched:
        """Can be referred to weakly."""

    async def work(waits: bool, held: Watched) -> Watched:
        if waits:
            await asyncio.sleep(0.001)
        return held

    gc.disable()
    try:
        for waits in (False, True):
            held = Watched()
            left = weakref.ref(held)
            await within(30, work(waits, held))
            del held
            assert left() is None
    finally:
        gc.enable()
