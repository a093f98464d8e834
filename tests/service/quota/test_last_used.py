"""When each key was last used: written with its usage, by the minute, and restored from backups."""

from datetime import UTC, datetime, timedelta

from service.quota.names import LAST_USED
from service.quota.report import last_used
from service.quota.restore import restore_usage
from tests.service.quota.test_backup import BEGUN, bring, export, flushed
from tests.support.usage import NOON, UsageWorker, stored

HOUR = timedelta(hours=1)
NOW = datetime.now(UTC)


def minute_of(time: datetime) -> datetime:
    return time.replace(second=0, microsecond=0)


async def test_a_flush_writes_the_minute_and_calls_the_store_no_more_than_before(usage: UsageWorker) -> None:
    usage.clock.now = NOW.timestamp()
    await flushed(usage, "a", "a", "b")
    found = await last_used(usage.redis)
    assert set(found) == {"a", "b"}
    assert minute_of(NOW) <= found["a"] <= minute_of(datetime.now(UTC))
    assert usage.redis.calls == 1, "the turn that stores the usage of both"


async def test_usage_that_waited_counts_for_the_hour_it_is_from_and_never_sets_the_minute_back(
    usage: UsageWorker,
) -> None:
    await flushed(usage, "a")
    noon = datetime.fromtimestamp(NOON, UTC)
    assert (await last_used(usage.redis))["a"] == noon + HOUR - timedelta(minutes=1)
    usage.clock.now = NOON - 3 * 3600
    await flushed(usage, "a")
    assert (await last_used(usage.redis))["a"] == noon + HOUR - timedelta(minutes=1)


async def test_a_damaged_record_of_it_makes_no_bill_wrong(usage: UsageWorker) -> None:
    await usage.client.set(LAST_USED, "x")
    await flushed(usage, "a")
    assert await stored(usage, "a") == 1
    assert await last_used(usage.redis) == {}
    await usage.client.delete(LAST_USED)
    await usage.client.hset(LAST_USED, "a", "soon")
    await flushed(usage, "a")
    assert set(await last_used(usage.redis)) == {"a"}


async def test_a_backup_restores_it_and_the_later_use_stays(usage: UsageWorker) -> None:
    usage.clock.now = NOW.timestamp()
    await flushed(usage, "a", "b")
    before, records = await last_used(usage.redis), await export(usage)
    await usage.client.hset(LAST_USED, "b", int(NOW.timestamp() // 60) + 100)
    await usage.client.hdel(LAST_USED, "a")
    await restore_usage(usage.redis, BEGUN, records, dry_run=True)
    assert set(await last_used(usage.redis)) == {"b"}
    await bring(usage, records, BEGUN)
    after = await last_used(usage.redis)
    assert after["a"] == before["a"]
    assert after["b"] > before["b"]
