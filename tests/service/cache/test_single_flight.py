"""Single flight: one fill, however many ask."""

import asyncio
import gc

from service.cache.single_flight import SingleFlight


class Fill:
    """Counts its runs; ends when the test says so."""

    def __init__(self) -> None:
        self.runs = 0
        self.may_end = asyncio.Event()
        self.error: Exception | None = None
        self.stored: list[str] = []

    async def __call__(self) -> str:
        self.runs += 1
        await self.may_end.wait()
        if self.error is not None:
            raise self.error
        return f"result {self.runs}"

    async def then(self, result: str) -> None:
        self.stored.append(result)


async def _settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_many_callers_share_one_fill() -> None:
    """All get its result, and it is stored once."""
    flights, fill = SingleFlight[str](0), Fill()
    callers = [asyncio.create_task(flights.run("k", fill, fill.then)) for _ in range(100)]
    await _settle()
    fill.may_end.set()
    assert await asyncio.gather(*callers) == ["result 1"] * 100
    await _settle()
    assert (fill.runs, fill.stored) == (1, ["result 1"])


async def test_other_keys_are_other_flights() -> None:
    """They do not wait for each other."""
    flights, slow, fast = SingleFlight[str](0), Fill(), Fill()
    fast.may_end.set()
    waiting = asyncio.create_task(flights.run("slow", slow, slow.then))
    assert await flights.run("fast", fast, fast.then) == "result 1"
    slow.may_end.set()
    await waiting


async def test_a_caller_that_goes_away_harms_nobody() -> None:
    """The first one too: its fill is not its own."""
    flights, fill = SingleFlight[str](0), Fill()
    first = asyncio.create_task(flights.run("k", fill, fill.then))
    await _settle()
    others = [asyncio.create_task(flights.run("k", fill, fill.then)) for _ in range(3)]
    await _settle()
    first.cancel()
    others[1].cancel()
    await _settle()
    fill.may_end.set()
    assert (await others[0], await others[2], fill.runs) == ("result 1", "result 1", 1)
    assert first.cancelled()


async def test_a_fill_that_nobody_waits_for_any_more_is_still_stored() -> None:
    """The next caller profits."""
    flights, fill = SingleFlight[str](0), Fill()
    only = asyncio.create_task(flights.run("k", fill, fill.then))
    await _settle()
    only.cancel()
    fill.may_end.set()
    await _settle()
    assert fill.stored == ["result 1"]


async def test_an_error_reaches_everyone_and_is_forgotten() -> None:
    """The next caller tries again at once, whatever the linger."""
    flights, fill = SingleFlight[str](60), Fill()
    fill.error = ValueError("no")
    callers = [asyncio.create_task(flights.run("k", fill, fill.then)) for _ in range(5)]
    await _settle()
    fill.may_end.set()
    results = await asyncio.gather(*callers, return_exceptions=True)
    assert [str(result) for result in results] == ["no"] * 5
    fill.error = None
    assert await flights.run("k", fill, fill.then) == "result 2"
    assert fill.stored == ["result 2"]


async def test_whoever_missed_just_before_the_store_gets_the_same_result() -> None:
    """For the linger; then the next one fills again."""
    flights, fill = SingleFlight[str](0.05), Fill()
    fill.may_end.set()
    assert await flights.run("k", fill, fill.then) == "result 1"
    assert await flights.run("k", fill, fill.then) == "result 1"
    await asyncio.sleep(0.1)
    assert await flights.run("k", fill, fill.then) == "result 2"


async def test_a_result_is_given_out_before_it_is_stored() -> None:
    """Nobody waits for the cache to take it."""
    flights, fill = SingleFlight[str](0), Fill()
    fill.may_end.set()
    stored = asyncio.Event()

    async def slowly(_: str) -> None:
        await stored.wait()

    assert await flights.run("k", fill, slowly) == "result 1"
    stored.set()


async def test_nothing_is_kept_of_finished_flights() -> None:
    """Made-up queries must not grow anything."""
    flights, fill = SingleFlight[str](0), Fill()
    fill.may_end.set()
    for number in range(20):
        await flights.run(str(number), fill, fill.then)
    await _settle()
    assert not flights._flights
    assert not flights._tasks


async def test_a_failing_store_does_not_fail_the_callers() -> None:
    """They have their result; the failure is reported by the loop, and the next caller fills again."""
    reported: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: reported.append(str(context.get("exception"))))
    flights, fill = SingleFlight[str](0), Fill()
    fill.may_end.set()

    async def failing(_: str) -> None:
        raise OSError("full")

    assert await flights.run("k", fill, failing) == "result 1"
    await _settle()
    gc.collect()
    assert reported == ["full"]
    assert await flights.run("k", fill, fill.then) == "result 2"
