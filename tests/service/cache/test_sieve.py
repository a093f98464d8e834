"""The SIEVE policy against a model made from the paper's words, its bounds, and a scan of the whole country."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.cache import sieve
from service.cache.sieve import STEP, Sieve

KEYS = st.integers(0, 40)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("get"), KEYS),
        st.tuples(st.just("put"), KEYS, st.integers(1, 4)),
        st.tuples(st.just("discard"), KEYS),
    ),
    max_size=300,
)
MAX_COST = 48  # entries of 1 to 3 are kept, of 4 are not


class Model:
    """The paper's figure 1 on a plain list, oldest first: [key, cost, visited]; `hand` is a key or None, the oldest."""

    def __init__(self, most_spared: int) -> None:
        self.entries: list[list[int]] = []
        self.hand: int | None = None
        self.most_spared = most_spared

    def get(self, key: int) -> bool:
        for entry in self.entries:
            if entry[0] == key:
                entry[2] = True
                return True
        return False

    def put(self, key: int, cost: int) -> None:
        visited = self.discard(key)
        if cost > MAX_COST // 16:
            return
        while sum(entry[1] for entry in self.entries) + cost > MAX_COST:
            self.evict()
        self.entries.append([key, cost, visited])

    def discard(self, key: int) -> bool:
        at = [entry[0] for entry in self.entries].index(key) if key in self.kept() else None
        if at is None:
            return False
        if self.hand == key:
            self.hand = self.entries[at + 1][0] if at + 1 < len(self.entries) else None
        del self.entries[at]
        return True

    def evict(self) -> None:
        at = 0 if self.hand is None else [entry[0] for entry in self.entries].index(self.hand)
        for _ in range(self.most_spared):
            if not self.entries[at][2]:
                break
            self.entries[at][2] = False
            at = (at + 1) % len(self.entries)
        self.hand = self.entries[at][0]
        self.discard(self.hand)

    def kept(self) -> set[int]:
        return {entry[0] for entry in self.entries}


def kept(numbers: Sieve[int, int]) -> set[int]:
    return set(numbers._nodes)


@settings(max_examples=150)
@given(OPERATIONS, st.sampled_from([2, sieve.MOST_SPARED]))
def test_it_does_what_the_model_does(
    operations: list[tuple[str, int] | tuple[str, int, int]], most_spared: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sieve, "MOST_SPARED", most_spared)
        numbers: Sieve[int, int] = Sieve(MAX_COST)
        model = Model(most_spared)
        for operation in operations:
            match operation:
                case "get", key:
                    assert (numbers.get(key) is not None) == model.get(key)
                case "put", key, cost:
                    model.put(key, cost)
                    assert numbers.put(key, key, cost) == (key in model.kept())
                case _, key:
                    assert numbers.discard(key) == model.discard(key)
            assert kept(numbers) == model.kept()
            assert numbers.cost == sum(entry[1] for entry in model.entries) <= MAX_COST


def test_a_scan_does_not_push_out_what_is_asked_for() -> None:
    """All 42,094 ZIP codes go by, once each, in a map with room for 3,000; of the 1,000 that others ask for meanwhile
    not one is ever missed."""
    chance = random.Random(42_094)
    codes: Sieve[int, int] = Sieve(3_000)
    hot = range(50_000, 51_000)
    for _ in range(2):
        for code in hot:
            if codes.get(code) is None:
                codes.put(code, code, 1)
    for code in range(42_094):
        if codes.get(code) is None:
            codes.put(code, code, 1)
        assert codes.get(chance.choice(hot)) is not None
    assert kept(codes) >= set(hot)
    assert codes.evictions == 1_000 + 42_094 - 3_000


def test_a_map_in_which_everything_was_asked_for_takes_a_newcomer_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sieve, "MOST_SPARED", 10)
    numbers: Sieve[int, int] = Sieve(100)
    for key in range(100):
        numbers.put(key, key, 1)
        numbers.get(key)
    numbers.put(100, 100, 1)
    assert kept(numbers) == set(range(101)) - {10}
    numbers.put(101, 101, 1)
    assert kept(numbers) == set(range(102)) - {10, 21}


@pytest.mark.parametrize("cost", [0, -1])
def test_an_entry_without_cost_is_a_mistake(cost: int) -> None:
    with pytest.raises(ValueError, match="at least 1 byte"):
        Sieve[int, int](100).put(1, 1, cost)


def test_a_long_walk_is_taken_in_steps() -> None:
    numbers: Sieve[int, int] = Sieve(10_000)
    for key in range(2_200):
        numbers.put(key, key, 1)
    looked: list[int] = []

    def odd(value: int) -> bool:
        looked.append(value)
        return value % 2 == 1

    seen = 0
    for gone in numbers.discard_where(odd):
        assert len(looked) - seen <= STEP
        assert gone == sum(value % 2 for value in looked[seen:])
        seen = len(looked)
    assert kept(numbers) == set(range(0, 2_200, 2))


@given(
    st.lists(KEYS, unique=True, min_size=1), st.lists(st.lists(st.tuples(st.booleans(), KEYS), max_size=6), max_size=20)
)
def test_anything_may_happen_between_the_steps(there: list[int], between: list[list[tuple[bool, int]]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sieve, "STEP", 3)
        numbers: Sieve[int, tuple[int, bool]] = Sieve(10_000)
        for key in there:
            numbers.put(key, (key, True), 1)
        expected = {key for key in there if key % 2 == 0}
        events = iter(between)
        steps = 0
        for _ in numbers.discard_where(lambda value: value[1] and value[0] % 2 == 1):
            steps += 1
            for put, key in next(events, []):
                if put:
                    numbers.put(key, (key, False), 1)
                    expected.add(key)
                else:
                    numbers.discard(key)
                    expected.discard(key)
        assert set(numbers._nodes) == expected
        assert steps <= len(there) // 3 + 1


def test_clear_leaves_nothing_and_the_map_works_on() -> None:
    numbers: Sieve[int, int] = Sieve(10_000)
    for key in range(1_200):
        numbers.put(key, key, 1)
    assert list(numbers.clear()) == [STEP, STEP, 1_200 - 2 * STEP]
    assert (len(numbers), numbers.cost, list(numbers.clear())) == (0, 0, [])
    assert numbers.put(1, 1, 1)
    assert numbers.get(1) == 1


@pytest.mark.parametrize("old", [0, 1, STEP - 1, STEP, STEP + 1, 3 * STEP])
def test_the_oldest_go_up_to_the_first_that_may_stay(old: int) -> None:
    numbers: Sieve[int, int] = Sieve(100_000)
    for key in range(3 * STEP):
        numbers.put(key, key, 1)
    numbers.put(0, 1_000_000, 1)
    steps = list(numbers.discard_oldest_where(lambda value: value < old))
    assert sum(steps) == max(0, old - 1)
    assert max(steps) <= STEP
    assert kept(numbers) == {0, *range(max(1, old), 3 * STEP)}
