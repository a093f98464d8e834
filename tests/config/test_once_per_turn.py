"""What is asked for in one turn of an event loop is done once."""

import asyncio

from config.once_per_turn import OncePerTurn


async def _turn() -> None:
    await asyncio.sleep(0)


async def test_it_is_done_once_for_a_turn_and_again_for_the_next() -> None:
    done = 0

    def act() -> None:
        nonlocal done
        done += 1

    turn = OncePerTurn(act)
    for expected in (1, 2):
        for _ in range(3):
            turn.soon()
        assert done == expected - 1
        await _turn()
        assert done == expected
    await _turn()
    assert done == 2


async def test_it_can_ask_for_itself_again() -> None:
    done = 0

    def act() -> None:
        nonlocal done
        done += 1
        if done < 3:
            turn.soon()

    turn = OncePerTurn(act)
    turn.soon()
    for expected in (1, 2, 3, 3):
        await _turn()
        assert done == expected


async def test_a_failure_does_not_keep_it_from_being_done_again() -> None:
    """The event loop hears of it, as of any callback's."""
    failures: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: failures.append(context["exception"]))

    def act() -> None:
        raise RuntimeError("a defect")

    turn = OncePerTurn(act)
    for expected in (1, 2):
        turn.soon()
        await _turn()
        assert len(failures) == expected
