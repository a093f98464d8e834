"""QuotaGuard: what a worker knows of a quota, between flushes and across periods."""

import asyncio
from datetime import UTC, datetime

import pytest

from service.quota import quotas
from service.quota.quotas import QuotaState
from service.terms import Quota, parse_quota
from tests.support.usage import UsageWorker

MONTHLY = parse_quota("10/month")
DAILY = parse_quota("10/day")


async def state(worker: UsageWorker, quota: Quota = MONTHLY) -> QuotaState:
    found = worker.quotas.check("a", quota, worker.clock.now)
    if found is None:
        await worker.quotas.prime("a")
        found = worker.quotas.check("a", quota, worker.clock.now)
    assert found is not None
    return found


def count(worker: UsageWorker, times: int = 1) -> None:
    for _ in range(times):
        worker.counters.count("a", "forecast", "answered")


async def test_a_key_must_be_primed_once(usage: UsageWorker) -> None:
    """Its total may be anything; after that nothing is asked."""
    assert usage.quotas.check("a", MONTHLY, usage.clock.now) is None
    await usage.quotas.prime("a")
    calls = usage.redis.calls
    for _ in range(100):
        assert usage.quotas.check("a", MONTHLY, usage.clock.now) is not None
    assert usage.redis.calls == calls


async def test_many_that_wait_for_a_total_read_it_once(usage: UsageWorker) -> None:
    """And whoever goes away takes it from nobody."""
    waiting = [asyncio.create_task(usage.quotas.prime("a")) for _ in range(20)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert usage.redis.calls == 1
    assert usage.quotas.check("a", MONTHLY, usage.clock.now) is not None


async def test_what_was_counted_here_is_known_at_once(usage: UsageWorker) -> None:
    """Before the flush, during it and after it: never missing, never twice."""
    assert await state(usage) == QuotaState(
        used=0, remaining=10, resets_in=10 * 86_400 + 43_200, window=30 * 86_400, exhausted=False, warning=False
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
    """Whether or not this worker counted anything itself."""
    assert ((await state(usage)).used, (await state(other)).used) == (0, 0)
    count(usage, 4)
    await usage.flusher.flush()
    count(other, 1)
    await other.flusher.flush()
    assert (await state(other)).used == 5
    assert (await state(usage)).used == 4
    usage.monotonic.now += quotas.REFRESH_SECONDS + 0.1
    await usage.flusher.flush()
    assert (await state(usage)).used == 5


async def test_a_key_that_nobody_asks_about_is_not_refreshed(usage: UsageWorker) -> None:
    """Idle keys cost nothing."""
    await state(usage)
    usage.monotonic.now += 60
    await usage.flusher.flush()
    calls = usage.redis.calls
    usage.monotonic.now += 60
    await usage.flusher.flush()
    assert usage.redis.calls == calls


async def test_warning_and_exhaustion(usage: UsageWorker) -> None:
    """From the soft level on, and from the last request on; what remains is never below zero."""
    seen = []
    for _ in range(12):
        found = await state(usage)
        seen.append((found.warning, found.exhausted, found.remaining))
        count(usage)
    assert seen[:8] == [(False, False, 10 - used) for used in range(8)]
    assert seen[8:] == [(True, False, 2), (True, False, 1), (True, True, 0), (True, True, 0)]


async def test_what_was_rejected_costs_nothing(usage: UsageWorker) -> None:
    """Nor what was not found."""
    await state(usage)
    usage.counters.count("a", "forecast", "rejected")
    usage.counters.count("a", "forecast", "not_found")
    await usage.flusher.flush()
    assert (await state(usage)).used == 0


async def test_a_day_begins_at_midnight_in_utc(usage: UsageWorker) -> None:
    """With nobody doing anything about it; of the month the days are kept."""
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
    """Counts of the old one that were not stored in time belong to the old one."""
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


async def test_an_unknown_total_counts_as_nothing_while_the_store_is_away(
    usage: UsageWorker, other: UsageWorker
) -> None:
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


async def test_a_known_total_outlives_the_store(usage: UsageWorker) -> None:
    """What was learned is not forgotten while nothing new can be."""
    await state(usage)
    count(usage, 10)
    await usage.flusher.flush()
    usage.redis.away = True
    await usage.flusher.flush()
    assert (await state(usage)).exhausted


async def test_a_quota_survives_a_restart_of_the_worker(usage: UsageWorker, other: UsageWorker) -> None:
    """The next process reads what this one stored."""
    await state(usage)
    count(usage, 10)
    await usage.flusher.stop()
    assert (await state(other)).exhausted


async def test_memory_for_totals_is_bounded(usage: UsageWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever was known longest is primed again."""
    monkeypatch.setattr(quotas, "_MOST_KNOWN", 3)
    for key_id in "abcd":
        await usage.quotas.prime(key_id)
    known = [usage.quotas.check(key_id, MONTHLY, usage.clock.now) is not None for key_id in "abcd"]
    assert known == [False, True, True, True]
