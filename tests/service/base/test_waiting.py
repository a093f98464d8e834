"""Who waits for a call."""

import pytest

from service.base.timeouts import Waiting
from tests.support.waiting import eventually


async def test_all_who_wait_are_told_when_it_ends_and_once() -> None:
    waiting, told = Waiting(), list[int]()
    for number in range(3):
        waiting.wait(lambda number=number: told.append(number), 60.0)  # type: ignore[misc]
    waiting.end()
    waiting.end()
    assert told == [0, 1, 2]


async def test_nobody_waits_longer_than_the_first_is_ready_to() -> None:
    """What takes longer goes on, and may be waited for anew."""
    waiting, told = Waiting(), list[str]()
    waiting.wait(lambda: told.append("first"), 0.01)
    waiting.wait(lambda: told.append("second"), 60.0)
    await eventually(lambda: told == ["first", "second"])
    waiting.wait(lambda: told.append("third"), 60.0)
    assert told == ["first", "second"]
    waiting.end()
    assert told == ["first", "second", "third"]


async def test_a_defect_of_one_who_waits_keeps_nobody_waiting(caplog: pytest.LogCaptureFixture) -> None:
    def failing() -> None:
        raise ValueError("a defect")

    waiting, told = Waiting(), list[int]()
    waiting.wait(failing, 60.0)
    waiting.wait(lambda: told.append(1), 60.0)
    waiting.end()
    assert told == [1]
    assert "a defect" in caplog.text
