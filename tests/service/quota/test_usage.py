"""UsageCounters: what is counted, and in which batches it leaves."""

import pytest

from service.quota.batch import OUTCOMES, UsageOutcome, outcome_of
from service.quota.usage import UsageCounters
from tests.support.key_store import Clock
from tests.support.usage import NOON, noon

DAY = int(NOON // 86_400)


@pytest.fixture
def clock() -> Clock:
    return noon()


@pytest.fixture
def counters(clock: Clock) -> UsageCounters:
    return UsageCounters(clock)


@pytest.mark.parametrize(
    ("status", "outcome", "counted"),
    [
        (200, "answered", "answered"),
        (200, "answered_empty", "answered_empty"),
        (304, "not_modified", "not_modified"),
        (404, "no_matching_records", "not_found"),
        (400, "missing_parameter", "rejected"),
        (401, "revoked_api_key", None),
        (403, "not_entitled", "rejected"),
        (405, "method_not_allowed", "rejected"),
        (429, "rate_limited", "limited"),
        (500, "internal", None),
        (503, "unavailable", None),
    ],
)
def test_a_request_counts_as_what_became_of_it(status: int, outcome: str, counted: UsageOutcome | None) -> None:
    """What failed on our side is no matter of a bill, nor is what came with a key that was not accepted."""
    assert outcome_of(status, outcome) == counted


def test_counts_of_a_key_leave_as_one_batch(counters: UsageCounters) -> None:
    counters.count("a", "forecast", "answered")
    counters.count("a", "forecast", "answered")
    counters.count("a", "forecast", "rejected")
    counters.count("a", "projects", "answered")
    counters.count("b", "forecast", "not_found")
    batches = dict(counters.to_send())
    assert set(batches["a"].cells) == {
        (DAY, "forecast", "answered", 2),
        (DAY, "forecast", "rejected", 1),
        (DAY, "projects", "answered", 1),
    }
    assert batches["b"].cells == ((DAY, "forecast", "not_found", 1),)


def test_the_day_is_that_of_the_end_of_a_request_in_utc(counters: UsageCounters, clock: Clock) -> None:
    clock.now = (DAY + 1) * 86_400 - 1.0
    counters.count("a", "forecast", "answered")
    clock.now += 1
    counters.count("a", "forecast", "answered")
    [(_, batch)] = counters.to_send()
    assert [day for day, *_ in batch.cells] == [DAY, DAY + 1]
    assert [hour for hour, *_ in batch.hours] == [DAY * 24 + 23, DAY * 24 + 24]


def test_hours_of_a_day_are_counted_apart_and_added_up(counters: UsageCounters, clock: Clock) -> None:
    clock.now = DAY * 86_400 + 9 * 3_600.0
    counters.count("a", "forecast", "answered", 2)
    counters.to_spool()
    clock.now += 3_599
    counters.count("a", "forecast", "answered")
    clock.now += 1
    counters.count("a", "forecast", "answered")
    [batch] = counters.to_spool()["a"]
    assert batch.cells == ((DAY, "forecast", "answered", 4),)
    assert set(batch.hours) == {(DAY * 24 + 9, "forecast", "answered", 3), (DAY * 24 + 10, "forecast", "answered", 1)}


def test_a_batch_stays_as_it_was_until_it_is_confirmed(counters: UsageCounters) -> None:
    counters.count("a", "forecast", "answered")
    first = counters.to_send()
    counters.count("a", "forecast", "answered")
    assert counters.to_send() == first
    counters.confirm("a", first[0][1].number)
    [(_, second)] = counters.to_send()
    assert second.number > first[0][1].number
    assert second.cells == ((DAY, "forecast", "answered", 1),)
    counters.confirm("a", second.number)
    assert (counters.to_send(), counters.waiting()) == ([], set())


def test_a_late_confirmation_of_an_older_batch_is_of_no_use(counters: UsageCounters) -> None:
    counters.count("a", "forecast", "answered")
    [(_, first)] = counters.to_send()
    counters.confirm("a", first.number)
    counters.count("a", "forecast", "answered")
    counters.to_send()
    counters.confirm("a", first.number)
    assert counters.waiting() == {"a"}


def test_billable_is_what_waits_and_what_is_under_way(counters: UsageCounters, clock: Clock) -> None:
    for outcome in OUTCOMES:
        counters.count("a", "forecast", outcome)
    assert counters.billable("a", DAY, DAY + 1) == 3
    counters.to_send()
    clock.now += 86_400
    counters.count("a", "forecast", "answered")
    assert counters.billable("a", DAY, DAY + 1) == 3
    assert counters.billable("a", DAY, DAY + 2) == 4
    assert counters.billable("b", DAY, DAY + 2) == 0


def test_memory_does_not_grow_with_requests(counters: UsageCounters) -> None:
    for _ in range(10_000):
        counters.count("a", "forecast", "answered")
    counters.to_send()
    for _ in range(10_000):
        counters.count("a", "forecast", "answered")
    [sent, open_] = counters.surrender()["a"]
    assert (len(sent.cells), len(open_.cells)) == (1, 1)
    assert sent.cells[0][3] == open_.cells[0][3] == 10_000
    assert sent.number < open_.number
    assert counters.waiting() == set()


def test_counts_of_workers_are_separate() -> None:
    assert len({UsageCounters().worker_id for _ in range(100)}) == 100
