"""UsageFlusher: everything that was counted is stored, once, whatever becomes of the flushes."""

import asyncio
import logging
from pathlib import Path

import pytest

from service.base.terms import Quota
from service.quota import flusher, usage_store
from service.quota.confirmed_batches import KEPT_SECONDS, ConfirmedBatches
from service.quota.names import counts_name, sequences_name
from tests.support.key_store import Clock
from tests.support.usage import UsageWorker, count, spool_files, stored
from tests.support.waiting import eventually

RECORD = counts_name("a", "2026-11")


async def test_a_lost_reply_costs_only_its_own_part(usage: UsageWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many keys travel in parts: those that were confirmed stay confirmed."""
    monkeypatch.setattr(usage_store, "MOST_AT_ONCE", 2)
    keys = [f"k{number}" for number in range(7)]
    count(usage, *keys)
    usage.redis.fates.extend(["ok", "reply lost"])
    assert not await usage.flusher.flush()
    assert len(usage.counters.waiting()) == 5
    assert await usage.flusher.flush()
    assert [await stored(usage, key) for key in keys] == [1] * 7


async def test_a_damaged_record_stops_no_other(usage: UsageWorker, caplog: pytest.LogCaptureFixture) -> None:
    await usage.client.hset(RECORD, "20:forecast:answered", "many")
    for _ in range(3):
        count(usage, "a", "b")
        assert await usage.flusher.flush()
    assert await stored(usage, "b") == 3
    assert usage.flusher.problem is not None
    assert f"{RECORD} 20:forecast:answered holds many" in usage.flusher.problem
    assert [record.levelno for record in caplog.records if "cannot be stored" in record.message] == [logging.ERROR]
    await usage.client.hset(RECORD, "20:forecast:answered", "10")
    await usage.flusher.flush()
    await usage.flusher.flush()
    assert await stored(usage) == 13
    assert usage.flusher.problem is None


@pytest.mark.parametrize("name", [RECORD, sequences_name("a")])
async def test_a_record_of_another_type_stops_no_other(usage: UsageWorker, name: str) -> None:
    await usage.client.set(name, "x")
    count(usage, "a", "b")
    await usage.flusher.flush()
    assert await stored(usage, "b") == 1
    assert "WRONGTYPE" in (usage.flusher.problem or "")
    await usage.client.delete(name)
    await usage.flusher.flush()
    assert await stored(usage) == 1
    assert usage.flusher.problem is None


async def test_an_unexpected_reply_is_no_confirmation(usage: UsageWorker) -> None:
    count(usage)
    usage.redis.spoiled = lambda replies: replies.replace(b"*7\r\n:1\r\n:1", b"*7\r\n:1\r\n+many")
    assert await usage.flusher.flush()
    assert "unexpected reply" in (usage.flusher.problem or "")
    usage.redis.spoiled = bytes
    await usage.flusher.flush()
    assert await stored(usage) == 1
    assert usage.flusher.problem is None


async def test_counts_are_stored_by_themselves(usage: UsageWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flusher, "FLUSH_SECONDS", 0.01)
    usage.flusher.start()
    count(usage)

    async def has(times: int) -> bool:
        return await stored(usage) == times

    await eventually(lambda: has(1))
    usage.redis.away = True
    count(usage)
    calls = usage.redis.calls
    await eventually(lambda: usage.redis.calls > calls + 3)
    usage.redis.away = False
    await eventually(lambda: has(2))
    await usage.flusher.stop()


async def test_stopping_stores_everything(usage: UsageWorker, tmp_path: Path) -> None:
    usage.redis.fates.extend(["reply lost", "not run", "not run"])
    count(usage)
    await usage.flusher.flush()
    count(usage)
    await usage.flusher.stop()
    assert await stored(usage) == 2
    assert spool_files(tmp_path) == []


async def test_stopping_waits_for_the_flush_under_way(usage: UsageWorker) -> None:
    """A call is never cancelled half-way, and no batch is under way twice."""
    usage.flusher.start()
    count(usage)
    await asyncio.sleep(0)
    count(usage)
    await usage.flusher.stop()
    assert await stored(usage) == 2


async def has_lost(worker: UsageWorker, key_id: str = "a") -> None:
    """The store is as a replica that had only the first batch of `key_id` when it became the primary."""
    await worker.client.hset(sequences_name(key_id), worker.counters.worker_id, "1:1795176000")
    fields = ("20:forecast:answered", "20:*:billable", "*:*:billable")
    await worker.client.hset(counts_name(key_id, "2026-11"), mapping=dict.fromkeys(fields, 1))


async def stored_one_by_one(worker: UsageWorker, number: int) -> None:
    for _ in range(number):
        count(worker)
        await worker.flusher.flush()


async def test_the_next_flush_stores_what_the_store_lost(usage: UsageWorker, caplog: pytest.LogCaptureFixture) -> None:
    await stored_one_by_one(usage, 5)
    await has_lost(usage)
    await stored_one_by_one(usage, 1)
    assert await stored(usage) == 6
    assert usage.counters.waiting() == set()
    assert "lost confirmed usage of a" in caplog.text


@pytest.mark.parametrize("first", ["flush", "quota"])
async def test_a_loss_that_a_flush_and_a_quota_find_at_once_is_no_refusal(usage: UsageWorker, first: str) -> None:
    await stored_one_by_one(usage, 3)
    await has_lost(usage)
    count(usage)
    finding = [usage.flusher.flush(), usage.quotas.prime("a")]
    await asyncio.gather(*(finding if first == "flush" else reversed(finding)))
    assert usage.flusher.problem is None
    await usage.flusher.flush()
    assert await stored(usage) == 4


async def test_lost_counts_of_an_idle_key_are_stored_again(usage: UsageWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flusher, "_CHECK_SECONDS", 0)
    clock = Clock()
    usage.counters.kept = ConfirmedBatches(clock)
    await stored_one_by_one(usage, 3)
    await has_lost(usage)
    clock.now += KEPT_SECONDS
    await usage.flusher.flush()
    assert await stored(usage) == 3
    clock.now += KEPT_SECONDS
    await usage.flusher.flush()
    assert usage.counters.kept.held() == []


async def test_after_an_outage_all_keys_are_looked_for(usage: UsageWorker) -> None:
    """Another server may answer now; so it is when a worker stops, and when one key has lost something."""
    await stored_one_by_one(usage, 3)
    count(usage, "b")
    usage.redis.fates.append("not run")
    assert not await usage.flusher.flush()
    await has_lost(usage)
    assert await usage.flusher.flush()
    assert (await stored(usage), await stored(usage, "b")) == (3, 1)
    await has_lost(usage)
    await usage.flusher.stop()
    assert await stored(usage) == 3


async def test_a_quota_counts_what_the_store_lost(usage: UsageWorker) -> None:
    quota = Quota(10, "month")
    await usage.quotas.prime("a")
    await stored_one_by_one(usage, 5)
    await has_lost(usage)
    count(usage)
    usage.redis.fates.extend(["ok", "not run"])
    assert not await usage.flusher.flush()
    assert (await usage.quotas.standing("a", quota)).remaining == 4


async def test_a_stop_without_the_store_spools_recent_batches(usage: UsageWorker, other: UsageWorker) -> None:
    await stored_one_by_one(usage, 3)
    usage.redis.away = True
    await usage.flusher.stop(seconds=0)
    await has_lost(usage)
    await other.flusher.orphaned.once()
    assert await stored(usage) == 3
