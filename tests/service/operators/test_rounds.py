"""Work that is done once for all who ask at the same time."""

import asyncio

import pytest

from service.operators.live import Rounds


class Work:
    """Says which of its calls made it, once it is let on."""

    def __init__(self) -> None:
        self.begun = 0
        self.go = asyncio.Event()

    async def __call__(self) -> int:
        self.begun += 1
        number = self.begun
        await self.go.wait()
        return number


async def test_a_crowd_costs_two_calls_and_gets_no_older_result() -> None:
    work = Work()
    rounds = Rounds(work)
    first = asyncio.create_task(rounds.get())
    await asyncio.sleep(0.01)
    others = [asyncio.create_task(rounds.get()) for _ in range(100)]
    await asyncio.sleep(0.01)
    assert work.begun == 1
    others.pop().cancel()
    work.go.set()
    assert await first == 1
    assert {await other for other in others} == {2}
    assert await rounds.get() == 3


async def test_a_call_that_fails_fails_for_those_who_waited_for_it_alone() -> None:
    failures = iter([OSError("no"), None])

    async def work() -> str:
        failure = next(failures)
        if failure is not None:
            raise failure
        return "made"

    rounds = Rounds(work)
    with pytest.raises(OSError, match="no"):
        await rounds.get()
    assert await rounds.get() == "made"
