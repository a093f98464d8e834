"""Single flight: one fill, however many ask."""

import asyncio
import contextlib
import gc
import weakref

import pytest

from service.base.single_flight import SingleFlight
from tests.support.virtual import VirtualLoop
from tests.support.waiting import settled


class Fill:
    """Counts its runs; ends when the test says so."""

    def __init__(self) -> None:
        self.runs = 0
        self.may_end = asyncio.Event()
        self.error: Exception | None = None
        self.ends = 0

    async def __call__(self) -> str:
        self.runs += 1
        await self.may_end.wait()
        if self.error is not None:
            raise self.error
        self.ends += 1
        return f"result {self.runs}"


async def test_many_callers_share_one_fill() -> None:
    flights, fill = SingleFlight[str](0), Fill()
    callers = [asyncio.create_task(flights.run("k", fill)) for _ in range(100)]
    await settled()
    fill.may_end.set()
    assert await asyncio.gather(*callers) == ["result 1"] * 100
    assert fill.runs == 1


async def test_other_keys_are_other_flights() -> None:
    flights, slow, fast = SingleFlight[str](0), Fill(), Fill()
    fast.may_end.set()
    waiting = asyncio.create_task(flights.run("slow", slow))
    assert await flights.run("fast", fast) == "result 1"
    slow.may_end.set()
    await waiting


async def test_a_cancelled_caller_does_not_affect_others() -> None:
    flights, fill = SingleFlight[str](0), Fill()
    first = asyncio.create_task(flights.run("k", fill))
    await settled()
    others = [asyncio.create_task(flights.run("k", fill)) for _ in range(3)]
    await settled()
    first.cancel()
    others[1].cancel()
    await settled()
    fill.may_end.set()
    assert (await others[0], await others[2], fill.runs) == ("result 1", "result 1", 1)
    assert first.cancelled()


async def test_a_fill_without_waiters_still_ends() -> None:
    flights, fill = SingleFlight[str](60), Fill()
    only = asyncio.create_task(flights.run("k", fill))
    await settled()
    only.cancel()
    fill.may_end.set()
    await settled()
    assert fill.ends == 1
    assert await flights.run("k", fill) == "result 1"


async def test_an_error_reaches_everyone_and_is_forgotten() -> None:
    flights, fill = SingleFlight[str](60), Fill()
    fill.error = ValueError("no")
    callers = [asyncio.create_task(flights.run("k", fill)) for _ in range(5)]
    await settled()
    fill.may_end.set()
    results = await asyncio.gather(*callers, return_exceptions=True)
    assert [str(result) for result in results] == ["no"] * 5
    fill.error = None
    assert await flights.run("k", fill) == "result 2"


async def test_a_miss_just_before_the_store_gets_the_same_result() -> None:
    flights, fill = SingleFlight[str](0.05), Fill()
    fill.may_end.set()
    assert await flights.run("k", fill) == "result 1"
    assert await flights.run("k", fill) == "result 1"
    await asyncio.sleep(0.1)
    assert await flights.run("k", fill) == "result 2"


async def test_nothing_is_kept_of_finished_flights() -> None:
    """Made-up queries must not grow anything."""
    flights, fill = SingleFlight[str](0), Fill()
    fill.may_end.set()
    for number in range(20):
        await flights.run(str(number), fill)
    await settled()
    assert not flights._flights
    assert not flights._landed


def test_each_result_is_forgotten_when_its_own_time_is_over() -> None:
    async def scenario() -> None:
        flights, fill = SingleFlight[str](10), Fill()
        fill.may_end.set()
        for key, result in (("a", "result 1"), ("b", "result 2")):
            assert await flights.run(key, fill) == result
            await asyncio.sleep(6)
        assert await flights.run("b", fill) == "result 2"
        assert await flights.run("a", fill) == "result 3"
        await asyncio.sleep(20)
        assert await flights.run("b", fill) == "result 4"
        assert list(flights._landed) == ["b"]

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(scenario())


@pytest.mark.parametrize("turns", [1, 20])
async def test_a_cancelled_fill_leaves_no_caller_waiting(turns: int) -> None:
    flights, fill = SingleFlight[str](0), Fill()
    callers = [asyncio.create_task(flights.run("k", fill)) for _ in range(3)]
    for _ in range(turns):
        await asyncio.sleep(0)
    flights._flights["k"].task.cancel()
    results = await asyncio.gather(*callers, return_exceptions=True)
    assert {type(result) for result in results} == {asyncio.CancelledError}
    assert not flights._flights


async def test_a_fill_without_waiters_is_cancelled_if_so_wanted() -> None:
    flights, fill = SingleFlight[str](abandons=True), Fill()
    callers = [asyncio.create_task(flights.run("k", fill)) for _ in range(3)]
    await settled()
    for caller in callers[:-1]:
        caller.cancel()
    await settled()
    first = flights._flights["k"].task
    assert not first.done()
    callers[-1].cancel()
    again = asyncio.create_task(flights.run("k", fill))
    await settled()
    assert first.cancelled()
    fill.may_end.set()
    assert await again == "result 2"
    assert (fill.ends, flights._flights, flights._abandoned) == (1, {}, set())


async def test_a_fill_that_fails_leaves_nothing_to_the_garbage_collector() -> None:
    """A store that is unreachable may fail thousands of them."""
    flights = SingleFlight[str]()

    left: list[weakref.ref[Exception]] = []

    class FailedError(Exception):
        def __init__(self) -> None:
            left.append(weakref.ref(self))

    async def fail() -> str:
        raise FailedError

    async def caller() -> None:
        with contextlib.suppress(FailedError):
            await flights.run("k", fail)

    gc.disable()
    try:
        await caller()
        await settled()
        assert [error() for error in left] == [None]
    finally:
        gc.enable()


async def test_the_oldest_results_make_room_for_new_ones() -> None:
    flights = SingleFlight[str](60.0, most=2)
    fills = {key: Fill() for key in "abc"}
    for key, fill in fills.items():
        fill.may_end.set()
        await flights.run(key, fill)
    for key in "bca":
        await flights.run(key, fills[key])
    assert [fill.runs for fill in fills.values()] == [2, 1, 1]
