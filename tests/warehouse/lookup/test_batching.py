"""Who is answered by the next statement: first come, first served, large or small."""

import asyncio
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warehouse.lookup.batching import (
    MAX_KEYS_PER_STATEMENT,
    LookupQueue,
    PendingLookup,
    distribute,
    shared_statement,
    singly,
)
from warehouse.lookup.query import LookupStatement
from warehouse.schema.errors import LookupFailure

FEW = ("one", "two")
FORECAST, OTHER = LookupStatement("many", (), FEW), LookupStatement("other", ())


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def request(loop: asyncio.AbstractEventLoop, *keys: str, lookup: LookupStatement = FORECAST) -> PendingLookup:
    return PendingLookup(lookup, loop.create_future(), 0, keys)


def sized(loop: asyncio.AbstractEventLoop, size: int, lookup: LookupStatement = FORECAST) -> PendingLookup:
    return request(loop, *map(str, range(size)), lookup=lookup)


def waiting(requests: Sequence[PendingLookup]) -> LookupQueue:
    queue = LookupQueue()
    for one in requests:
        queue.add(one)
    return queue


def sizes(taken: Sequence[PendingLookup]) -> list[int]:
    return [len(one.keys) for one in taken]


@given(st.lists(st.tuples(st.sampled_from((FORECAST, OTHER)), st.sampled_from((0, 1, 2, 178, 342, 600))), max_size=30))
def test_each_look_up_is_taken_once_and_in_order(
    loop: asyncio.AbstractEventLoop, asked: list[tuple[LookupStatement, int]]
) -> None:
    """By none of the same look-up; the oldest of all is in every statement."""
    requests = [sized(loop, size, lookup) for lookup, size in asked]
    queue = waiting(requests)
    left = list(requests)
    while queue:
        taken = queue.take()
        assert taken[0] is left[0]
        assert len({id(one.lookup) for one in taken}) == 1
        assert len(taken) == 1 or (all(sizes(taken)) and sum(sizes(taken)) <= MAX_KEYS_PER_STATEMENT)
        same = [one for one in left if one.lookup is taken[0].lookup and bool(one.keys) == bool(taken[0].keys)]
        assert taken == same[: len(taken)]
        left = [one for one in left if one not in taken]
    assert not left


def test_a_large_one_is_not_passed_by_small_ones_behind_it(loop: asyncio.AbstractEventLoop) -> None:
    """Nor are small ones held up by more of them than one statement reads."""
    queue = waiting([sized(loop, size) for size in (1, 500, 178, 1, 1)])
    assert [sizes(queue.take()) for _ in range(2)] == [[1, 500], [178, 1, 1]]


def test_one_with_more_keys_than_a_statement_holds_is_asked_for_by_itself(loop: asyncio.AbstractEventLoop) -> None:
    queue = waiting([sized(loop, size) for size in (MAX_KEYS_PER_STATEMENT + 1, 1)])
    assert [sizes(queue.take()) for _ in range(2)] == [[MAX_KEYS_PER_STATEMENT + 1], [1]]


def test_what_is_put_back_comes_first_each_alone(loop: asyncio.AbstractEventLoop) -> None:
    queue = waiting([sized(loop, size) for size in (1, 2, 3, 4)])
    taken = queue.take()
    queue.add(sized(loop, 5))
    taken[1].answer.cancel()
    queue.put_back(singly(taken))
    assert [sizes(queue.take()) for _ in range(4)] == [[1], [3], [4], [5]]


def test_those_that_left_are_not_taken(loop: asyncio.AbstractEventLoop) -> None:
    requests = [sized(loop, size) for size in (1, 2, 3)]
    queue = waiting(requests)
    queue.discard(requests[0])
    queue.discard(requests[0])
    assert len(queue) == 2
    assert sizes(queue.take_all()) == [2, 3]
    assert not queue


def test_a_key_that_several_ask_for_is_in_the_statement_once(loop: asyncio.AbstractEventLoop) -> None:
    """The form of the statement goes by how many there are then."""
    assert shared_statement([request(loop, "b"), request(loop, "b")]) == ("one", ("b",))
    assert shared_statement([request(loop, "b"), request(loop, "a", "b")]) == ("two", ("a", "b"))
    assert shared_statement([request(loop, "b", "c"), request(loop, "a", "b")]) == ("many", (["a", "b", "c"],))


def test_each_gets_its_entries_in_its_order(loop: asyncio.AbstractEventLoop) -> None:
    """And a failure rather than some of them; who has gone gets nothing."""
    first, second, short, gone = (request(loop, *keys) for keys in ("ab", "ca", "ad", "a"))
    gone.answer.cancel()
    distribute([first, second, short, gone], [("c", b"C"), ("a", b"A"), ("b", b"B")])
    assert first.answer.result() == [b"A", b"B"]
    assert second.answer.result() == [b"C", b"A"]
    assert isinstance(short.answer.exception(), LookupFailure)
    assert gone.answer.cancelled()
