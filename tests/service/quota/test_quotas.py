"""QuotaGuard: what a worker knows of a quota, between flushes and across periods."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.base.terms import Quota, parse_quota
from service.quota import quotas
from service.quota.batch import NO_BATCH
from service.quota.quota_state import TRUST_SECONDS, QuotaReading, QuotaState
from service.quota.quotas import DUE_SECONDS
from service.quota.usage_store import HOLD_SECONDS, Totals
from tests.support.usage import NOON, UsageWorker, stored
from tests.support.waiting import eventually

MONTHLY = parse_quota("10/month")
DAILY = parse_quota("10/day")
MANY = parse_quota("1000/day")
TODAY = int(NOON // 86_400)


async def state(worker: UsageWorker, quota: Quota = MONTHLY) -> QuotaState:
    return await worker.quotas.standing("a", quota)


def count(worker: UsageWorker, times: int = 1) -> None:
    for _ in range(times):
        worker.counters.count("a", "forecast", "answered")


async def test_the_used_share_is_what_is_known_of_the_period(usage: UsageWorker) -> None:
    assert usage.quotas.used_share("a") is None
    await state(usage)
    count(usage, 3)
    assert usage.quotas.used_share("a") == 0.3
    usage.clock.now += 40 * 86_400
    assert usage.quotas.used_share("a") is None, "the month is over"


async def test_what_was_counted_here_is_known_at_once(usage: UsageWorker) -> None:
    assert await state(usage) == QuotaState(
        used=0, remaining=10, resets_in=10 * 86_400 + 43_200, window=30 * 86_400, exhausted=False, warn_from=8
    )
    count(usage, 3)
    assert (await state(usage)).used == 3
    usage.redis.fates.append("reply lost")
    await usage.flusher.flush()
    count(usage)
    assert (await state(usage)).used == 4
    await usage.flusher.flush()
    assert (await state(usage)).used == 4
    await usage.flusher.flush()
    assert (await state(usage)).used == 4


async def test_what_others_counted_is_known_with_the_next_flush(usage: UsageWorker, other: UsageWorker) -> None:
    assert ((await state(usage, MANY)).used, (await state(other, MANY)).used) == (0, 0)
    count(usage, 4)
    await usage.flusher.flush()
    count(other, 1)
    await other.flusher.flush()
    assert (await state(other, MANY)).used == 5
    assert (await state(usage, MANY)).used == 4
    count(usage, 1)
    await usage.flusher.flush()
    assert (await state(usage, MANY)).used == 6


async def test_a_total_that_is_old_is_read_again(usage: UsageWorker, other: UsageWorker) -> None:
    await state(usage)
    count(other, 4)
    await other.flusher.flush()
    usage.clock.now += 60
    calls = usage.redis.calls
    await usage.flusher.flush()
    assert usage.redis.calls == calls
    assert usage.quotas.check("a", MONTHLY, usage.clock.now) is None
    assert (await state(usage)).used == 4
    assert usage.redis.calls == calls + 1


async def test_a_total_that_grows_old_is_read_again_while_requests_go_by_it(usage: UsageWorker) -> None:
    """So that those of a hot key need not wait where flushes are late, as in a very busy loop."""
    await state(usage, MANY)
    calls = usage.redis.calls
    for seconds in (DUE_SECONDS - 0.01, 0.02):
        assert usage.redis.calls == calls
        usage.clock.now += seconds
        assert usage.quotas.check("a", MANY, usage.clock.now) is not None
        await eventually(lambda: not usage.quotas._reads)
    assert usage.redis.calls == calls + 1
    usage.clock.now += TRUST_SECONDS - 0.1
    assert usage.quotas.check("a", MANY, usage.clock.now) is not None


async def test_a_total_is_good_while_it_is_read_again_and_for_no_longer_than_twice_its_time(usage: UsageWorker) -> None:
    await state(usage, MANY)
    usage.redis.seconds = 60
    begun = usage.clock.now
    for age, is_good in (
        (DUE_SECONDS + 0.01, True),
        (2 * TRUST_SECONDS - 0.01, True),
        (2 * TRUST_SECONDS + 0.01, False),
    ):
        usage.clock.now = begun + age
        assert (usage.quotas.check("a", MANY, usage.clock.now) is not None) == is_good
    await usage.redis.stop()


async def test_a_clock_that_was_set_back_makes_no_total_young(usage: UsageWorker) -> None:
    await state(usage, MANY)
    usage.clock.now -= 3600
    assert usage.quotas.check("a", MANY, usage.clock.now) is None
    assert (await state(usage, MANY)).used == 0


async def test_when_little_is_left_each_request_asks(usage: UsageWorker, other: UsageWorker) -> None:
    quota = parse_quota("3/day")
    await state(usage, quota)
    count(usage)
    assert usage.quotas.check("a", quota, usage.clock.now) is None
    await usage.quotas.prime("a")
    assert await stored(usage) == 1
    assert (await state(other, quota)).used == 1


async def test_a_part_of_what_is_left_is_let_pass_without_asking(usage: UsageWorker) -> None:
    await state(usage, MANY)
    usage.quotas._workers = lambda: 5
    await usage.quotas.prime("a")
    passed = 0
    while usage.quotas.check("a", MANY, usage.clock.now) is not None:
        passed += 1
        count(usage)
    assert passed == MANY.requests // 20


async def test_what_was_let_pass_last_is_stored_soon(usage: UsageWorker) -> None:
    await state(usage, parse_quota("1/day"))
    count(usage)
    await eventually(lambda: not usage.counters.waiting())
    assert await stored(usage) == 1


async def test_what_is_exhausted_stays_so_without_asking(usage: UsageWorker) -> None:
    await state(usage, DAILY)
    count(usage, 10)
    usage.clock.now += 3600
    calls = usage.redis.calls
    assert (await state(usage, DAILY)).exhausted
    assert usage.redis.calls == calls
    assert not (await state(usage, parse_quota("20/day"))).exhausted
    assert (await state(usage, DAILY)).exhausted
    usage.clock.now += 86_400
    assert not (await state(usage, DAILY)).exhausted


async def test_an_answer_that_is_overtaken_is_of_no_use(usage: UsageWorker) -> None:
    """A later question has all that an earlier one has; the earlier answer may come last."""
    await state(usage, MANY)
    first, second = usage.quotas.number_call(), usage.quotas.number_call()
    usage.quotas.stored("a", NO_BATCH, Totals(TODAY, 7, 7), second)
    usage.quotas.stored("a", NO_BATCH, Totals(TODAY, 5, 5), first)
    assert (await state(usage, MANY)).used == 7


async def test_a_grant_of_a_call_that_a_newer_one_has_replaced_is_void(usage: UsageWorker) -> None:
    """As of a flush and a read at the same moment: the store holds only what the newer call says."""
    await state(usage, MANY)
    first = usage.quotas.claim("a", NO_BATCH, TODAY)
    second = usage.quotas.claim("a", NO_BATCH, TODAY)
    assert second is not None
    left = usage.quotas.reading("a").left
    for claim, granted in ((first, 0), (second, 30), (first, 0)):
        usage.quotas.stored("a", NO_BATCH, Totals(TODAY, 0, 0, 30, claim), usage.quotas.number_call())
        left += granted
        assert usage.quotas.reading("a").left == left


async def test_requests_under_way_are_carried_for_as_long_as_a_hold(usage: UsageWorker) -> None:
    await state(usage, MANY)
    usage.quotas.begin("a", 1, 3)
    usage.quotas.begin("a", 2, 1)
    usage.quotas.end("a", 1)
    count(usage, 5)
    for seconds, carried in ((0.5, 6), (HOLD_SECONDS, 5)):
        usage.clock.now += seconds
        claim = usage.quotas.claim("a", NO_BATCH, TODAY)
        assert claim is not None
        assert claim.carried - usage.quotas.reading("a").left == carried


async def test_a_worker_that_was_cut_off_asks_for_no_more_than_the_rest_of_its_share(one_of_two: UsageWorker) -> None:
    """Until all workers have stored what they spent in the outage."""
    await state(one_of_two, MANY)
    one_of_two.redis.away = True
    assert await spent_alone(one_of_two) == 500
    one_of_two.redis.away = False
    await all_stored(one_of_two)
    claim = one_of_two.quotas.claim("a", NO_BATCH, TODAY)
    assert claim is not None
    assert (claim.wanted, claim.carried) == (0, 0)


async def test_a_level_is_logged_by_one_worker(
    usage: UsageWorker, other: UsageWorker, caplog: pytest.LogCaptureFixture
) -> None:
    for worker in (usage, other):
        await state(worker)
    for _ in range(6):
        for worker in (usage, other):
            count(worker)
            worker.redis.fates.append("reply lost")
            await worker.flusher.flush()
            await worker.flusher.flush()
    assert [record.getMessage() for record in caplog.records if record.name == "forecast.quota"] == [
        "key a: nearly used up: 8 of 10/month",
        "key a: used up its quota: 10 of 10/month",
    ]


async def test_warning_and_exhaustion(usage: UsageWorker) -> None:
    seen = []
    for _ in range(12):
        found = await state(usage)
        seen.append((found.warning, found.exhausted, found.remaining))
        count(usage)
    assert seen[:8] == [(False, False, 10 - used) for used in range(8)]
    assert seen[8:] == [(True, False, 2), (True, False, 1), (True, True, 0), (True, True, 0)]


async def test_a_day_begins_at_midnight_in_utc(usage: UsageWorker) -> None:
    await state(usage)
    count(usage, 6)
    await usage.flusher.flush()
    count(usage, 1)
    usage.clock.now = datetime(2026, 11, 20, 23, 59, 59, 500_000, tzinfo=UTC).timestamp()
    assert ((await state(usage, DAILY)).used, (await state(usage, DAILY)).resets_in) == (7, 1)
    usage.clock.now += 0.5
    assert ((await state(usage, DAILY)).used, (await state(usage, DAILY)).resets_in) == (0, 86_400)
    assert (await state(usage)).used == 7
    count(usage, 2)
    await usage.flusher.flush()
    assert ((await state(usage, DAILY)).used, (await state(usage)).used) == (2, 9)


async def test_a_month_begins_on_its_first_day(usage: UsageWorker) -> None:
    await state(usage)
    count(usage, 10)
    assert (await state(usage)).exhausted
    usage.clock.now = datetime(2026, 12, 1, tzinfo=UTC).timestamp()
    found = await state(usage)
    assert (found.used, found.exhausted, found.resets_in) == (0, False, 31 * 86_400)
    await usage.flusher.flush()
    count(usage)
    await usage.flusher.flush()
    assert (await state(usage)).used == 1


async def test_an_unknown_total_counts_as_zero_without_the_store(usage: UsageWorker, other: UsageWorker) -> None:
    """A partner who may have paid is not turned away; the first flush corrects it."""
    await state(other)
    count(other, 9)
    await other.flusher.flush()
    usage.redis.away = True
    assert (await state(usage)).used == 0
    count(usage)
    assert not await usage.flusher.flush()
    assert (await state(usage)).used == 1
    usage.redis.away = False
    await usage.flusher.flush()
    found = await state(usage)
    assert (found.used, found.exhausted) == (10, True)


async def spent_alone(worker: UsageWorker, number: int = 1) -> int:
    """How many requests the worker lets pass, `number` at a time, before it withholds more."""
    passed = 0
    while not (await worker.quotas.standing("a", MANY, number)).withheld:
        count(worker, number)
        passed += number
    return passed


async def all_stored(worker: UsageWorker) -> None:
    while worker.counters.waiting():
        await worker.flusher.flush()


@pytest.fixture
def one_of_two(usage: UsageWorker, other: UsageWorker) -> UsageWorker:
    usage.quotas._workers = other.quotas._workers = lambda: 2
    return usage


async def test_a_worker_spends_its_share_alone_and_no_second_one(
    one_of_two: UsageWorker, other: UsageWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for worker in (one_of_two, other):
        await state(worker, MANY)
        worker.redis.away = True
    assert (await spent_alone(one_of_two), await spent_alone(other)) == (500, 500)
    one_of_two.clock.now += 2 * TRUST_SECONDS
    assert await spent_alone(one_of_two) == 0
    one_of_two.redis.away = False
    await all_stored(one_of_two)
    assert (await state(one_of_two, MANY)).used == 500
    assert await spent_alone(one_of_two) == 0
    other.redis.away = False
    await all_stored(other)
    monkeypatch.setattr(quotas, "SETTLED_SECONDS", 0.0)
    one_of_two.clock.now += 2 * TRUST_SECONDS
    assert (await state(one_of_two, MANY)).exhausted


async def test_a_share_is_less_what_all_stored_in_the_last_second(one_of_two: UsageWorker, other: UsageWorker) -> None:
    for worker in (one_of_two, other):
        await state(worker, MANY)
    count(one_of_two, 200)
    await one_of_two.flusher.flush()
    for worker in (one_of_two, other):
        worker.redis.away = True
        await worker.flusher.flush()
    assert 200 + await spent_alone(one_of_two) + await spent_alone(other) == MANY.requests


async def test_a_worker_that_never_heard_of_a_key_spends_a_share_of_its_quota(one_of_two: UsageWorker) -> None:
    one_of_two.redis.away = True
    assert await spent_alone(one_of_two, 300) == 300
    assert await spent_alone(one_of_two) == 200


async def test_memory_for_totals_is_bounded(usage: UsageWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "_MOST_KNOWN", 3)
    for key_id in "abcd":
        await usage.quotas.standing(key_id, MANY)
    known = [usage.quotas.check(key_id, MANY, usage.clock.now) is not None for key_id in "bcda"]
    assert known == [True, True, True, False]


async def test_requests_that_go_together_need_as_many_left(usage: UsageWorker) -> None:
    assert (await usage.quotas.standing("a", DAILY, 8)).remaining == 10
    count(usage, 8)
    assert (await usage.quotas.standing("a", DAILY, 3)).remaining == 2
    assert (await usage.quotas.standing("a", DAILY, 2)).remaining == 2
    count(usage, 2)
    assert (await usage.quotas.standing("a", DAILY, 2)).exhausted


async def test_requests_that_go_together_are_taken_from_what_needs_no_question(usage: UsageWorker) -> None:
    await state(usage, MANY)
    calls = usage.redis.calls
    left = usage.quotas.reading("a").left
    assert usage.quotas.check("a", MANY, usage.clock.now, 100) is not None
    assert (usage.redis.calls, usage.quotas.reading("a").left) == (calls, left - 100)


@given(st.integers(1, 100_000), st.integers(1, 90), st.integers(0, 20))
def test_what_needs_no_other_look_needs_no_warning(size: int, share: int, before: int) -> None:
    quota, reading = Quota(size, "day", warn_at=share / 100), QuotaReading()
    used = max(0, quota.warn_from - before)
    reading.adopt(quota, TODAY, TODAY + 1, 1)
    reading.trust(NOON, size)
    state = reading.standing(quota, used, NOON, NOON + 60)
    assert reading.spendable <= state.remaining // 1000
    assert reading.spendable == 0 or 100 * (used + 1 + reading.spendable) < share * size


def test_a_quota_that_changes_warns_from_its_new_share_on() -> None:
    reading = QuotaReading()
    for share in (0.5, 0.2, 0.9):
        quota = Quota(100, "day", warn_at=share)
        reading.adopt(quota, TODAY, TODAY + 1, 1)
        reading.trust(NOON, 100)
        assert reading.standing(quota, 0, NOON, NOON + 60).warn_from == 100 * share
