"""ConfirmedBatches: what was confirmed is kept until the store had it for long enough."""

import pytest

from service.quota import confirmed_batches
from service.quota.batch import UsageBatch
from service.quota.confirmed_batches import KEPT_SECONDS, ConfirmedBatches
from tests.support.key_store import Clock


def batch(number: int) -> UsageBatch:
    return UsageBatch(number, ((20_777, "forecast", "answered", number),), ((498_660, "forecast", "answered", number),))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def batches(clock: Clock) -> ConfirmedBatches:
    return ConfirmedBatches(clock)


def test_what_is_lost_comes_back_as_it_was_and_in_order(batches: ConfirmedBatches) -> None:
    for number in (2, 5, 9):
        batches.add("a", batch(number))
    assert batches.lost("a", 2) == ([batch(5), batch(9)], False)
    assert (batches.newest("a"), batches.newest("b")) == (2, 0)
    assert batches.lost("a", 2).batches == []


def test_a_later_batch_proves_the_older_ones(batches: ConfirmedBatches, clock: Clock) -> None:
    """Those of KEPT_SECONDS ago are kept no longer; if they are lost after that, it is said."""
    for number in (1, 2, 3):
        batches.add("a", batch(number))
        clock.now += KEPT_SECONDS / 2
    batches.add("a", batch(4))
    assert batches.lost("a", 1) == ([batch(3), batch(4)], True)


def test_a_key_without_later_batches_is_kept_until_the_store_was_asked(batches: ConfirmedBatches, clock: Clock) -> None:
    batches.add("a", batch(1))
    clock.now += KEPT_SECONDS / 2
    batches.add("b", batch(2))
    assert batches.to_check() == []
    clock.now += KEPT_SECONDS / 2
    assert batches.to_check() == ["a"]
    clock.now += KEPT_SECONDS * 10
    assert batches.newest("a") == 1
    batches.proven("a")
    assert batches.held() == ["b"]


def test_memory_is_bounded(batches: ConfirmedBatches, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirmed_batches, "MOST_KEPT", 10)
    for number in range(1, 21):
        batches.add("a", batch(number))
    batches.add("b", batch(21))
    batches.add("a", batch(22))
    assert [each.number for _, some in batches.all() for each in some] == [*range(12, 21), 22, 21]


def test_another_store_lost_nothing(batches: ConfirmedBatches) -> None:
    batches.note_store("one")
    batches.add("a", batch(1))
    batches.note_store("one")
    assert batches.newest("a") == 1
    batches.note_store("another")
    assert (batches.newest("a"), batches.store) == (0, "another")
