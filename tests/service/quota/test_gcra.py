"""GCRA by itself: the burst, the rate, refusals, clocks and rates that change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.base.terms import Rate
from service.quota.gcra import decide, pace_of

NOW = 1_800_000_000_000_000
SECOND = 1_000_000
rates = st.builds(
    Rate,
    st.integers(1, 5000) | st.integers(1, 10**9 - 1),
    st.sampled_from([1, 60, 3600]),
    st.integers(1, 1000) | st.integers(1, 10**9),
)


def test_a_full_bucket_grants_its_burst_and_then_the_rate() -> None:
    rate = Rate(500, 1, 100)
    first = decide(None, rate, NOW, 100)
    assert (first.granted, first.remaining, first.retry_after) == (100, 0, 0)
    assert decide(first.tat, rate, NOW + 1999, 1).retry_after == 1
    later = decide(first.tat, rate, NOW + 2000, 1)
    assert (later.granted, later.remaining) == (1, 0)


def test_part_of_what_is_wanted_is_granted() -> None:
    outcome = decide(None, Rate(10, 60, 3), NOW, 5)
    assert (outcome.granted, outcome.remaining, outcome.retry_after) == (3, 0, 6 * SECOND)


@given(rates, st.integers(0, 10**8), st.integers(1, 10**6))
def test_what_is_refused_costs_nothing(rate: Rate, passed: int, wanted: int) -> None:
    empty = decide(None, rate, NOW, pace_of(rate).burst).tat
    refusal = decide(empty, rate, NOW, wanted)
    assert (refusal.granted, refusal.tat) == (0, empty)
    assert decide(refusal.tat, rate, NOW + passed, wanted) == decide(empty, rate, NOW + passed, wanted)


@given(rates)
def test_retry_after_is_the_first_moment_that_grants(rate: Rate) -> None:
    refusal = decide(decide(None, rate, NOW, pace_of(rate).burst).tat, rate, NOW, 1)
    assert refusal.retry_after > 0
    assert decide(refusal.tat, rate, NOW + refusal.retry_after - 1, 1).granted == 0
    assert decide(refusal.tat, rate, NOW + refusal.retry_after, 1).granted == 1


@given(rates, st.lists(st.tuples(st.integers(0, 3 * SECOND), st.integers(1, 2000)), min_size=1, max_size=60))
def test_no_window_grants_more_than_burst_and_rate(rate: Rate, calls: list[tuple[int, int]]) -> None:
    pace = pace_of(rate)
    now, bucket, granted = NOW, None, []
    for passed, wanted in calls:
        now += passed
        outcome = decide(bucket, rate, now, wanted)
        bucket = outcome.tat
        granted.append((now, outcome.granted))
    for start, (began, _) in enumerate(granted):
        total = 0
        for at, tokens in granted[start:]:
            total += tokens
            # a burst of a fast rate fills a whole number of microseconds, which may hold a part of one more
            assert total <= pace.burst + (at - began + 1) * pace.requests / pace.micros


@given(rates, st.integers(1, 50))
def test_a_caller_that_keeps_to_the_rate_is_never_refused(rate: Rate, times: int) -> None:
    pace = pace_of(rate)
    bucket, now = decide(None, rate, NOW, pace.burst).tat, NOW
    for _ in range(times):
        now += pace.cost(1)
        outcome = decide(bucket, rate, now, 1)
        assert outcome.granted == 1
        bucket = outcome.tat


@pytest.mark.parametrize("back", [1, SECOND, 3600 * SECOND], ids=["a microsecond", "a second", "an hour"])
def test_a_clock_that_goes_back_blocks_for_one_request_at_most(back: int) -> None:
    rate = Rate(10, 1, 5)
    spent = decide(None, rate, NOW, 5).tat
    after = decide(spent, rate, NOW - back, 1)
    assert (after.granted, after.retry_after <= SECOND // 10) == (0, True)
    assert decide(after.tat, rate, NOW - back + after.retry_after, 1).granted == 1


def test_a_clock_that_goes_ahead_fills_the_bucket_once() -> None:
    rate = Rate(10, 1, 5)
    spent = decide(None, rate, NOW, 5).tat
    assert decide(spent, rate, NOW + 3600 * SECOND, 100).granted == 5


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Rate(10, 3600, 10), Rate(500, 1, 100)),
        (Rate(10, 1, 1000), Rate(10, 1, 5)),
        (Rate(500, 1, 100), Rate(10, 3600, 1)),
    ],
    ids=["raised", "burst lowered", "rate lowered"],
)
def test_a_new_rate_holds_from_the_next_request(before: Rate, after: Rate) -> None:
    spent = decide(None, before, NOW, before.burst).tat
    first = decide(spent, after, NOW, 1)
    wait = first.retry_after if first.granted == 0 else 0
    assert wait <= pace_of(after).cost(1)
    assert decide(first.tat, after, NOW + pace_of(after).cost(1), 1).granted == 1


@given(rates)
def test_every_number_is_exact_in_a_double(rate: Rate) -> None:
    """So that Lua decides the same; a realistic burst is never cut for it."""
    pace = pace_of(rate)
    horizon = pace.cost(pace.burst)
    assert max(horizon * pace.requests, pace.burst * pace.micros, NOW + horizon) < 2**53
    assert pace.burst == rate.burst or pace.burst > 1_000_000


@pytest.mark.parametrize("wanted", [0, -1])
def test_nothing_cannot_be_asked_for(wanted: int) -> None:
    """It would be granted for ever."""
    with pytest.raises(ValueError, match="at least 1"):
        decide(None, Rate(1, 1, 1), NOW, wanted)


@given(rates, st.integers(0, 1000), st.integers(2, 100))
def test_all_or_nothing(rate: Rate, spent: int, wanted: int) -> None:
    pace = pace_of(rate)
    if wanted > pace.burst:
        return
    full = decide(None, rate, NOW, min(max(1, spent), pace.burst))
    outcome = decide(full.tat, rate, NOW, wanted, wanted)
    if full.remaining >= wanted:
        assert outcome.granted == wanted
        return
    assert (outcome.granted, outcome.tat) == (0, full.tat)
    later = NOW + outcome.retry_after
    assert decide(outcome.tat, rate, later - 1, wanted, wanted).granted == 0
    assert decide(outcome.tat, rate, later, wanted, wanted).granted == wanted
