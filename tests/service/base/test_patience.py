"""Limits of time that bear a loop whose turns take long."""

import asyncio
import gc
import time
import weakref

import pytest

from service.base.patience import Alarm, Patience


async def test_what_does_not_end_is_cancelled() -> None:
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        async with Patience(0.02):
            await asyncio.Event().wait()
    assert time.monotonic() - began >= 0.02


async def test_what_ends_in_time_is_left_alone() -> None:
    async with Patience(0.01):
        await asyncio.sleep(0)
    await asyncio.sleep(0.03)


async def test_an_error_inside_is_what_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        async with Patience(30):
            raise ZeroDivisionError


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


class _Watched(Patience):
    """Can be referred to weakly."""


async def test_it_leaves_nothing_to_the_garbage_collector() -> None:
    """It is used for each call of a store."""
    gc.disable()
    try:
        patience = _Watched(30)
        left = weakref.ref(patience)
        async with patience:
            pass
        del patience
        assert left() is None
    finally:
        gc.enable()
