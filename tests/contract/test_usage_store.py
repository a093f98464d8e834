"""UsageStore over every server: a batch is added once, totals are right, old sequences go."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from service.base.terms import Quota
from service.quota.batch import NO_BATCH, UsageBatch, UsageOutcome
from service.quota.confirmed_batches import ConfirmedBatches
from service.quota.names import DAY_SECONDS, HOURS_KEPT_DAYS, date_of
from service.quota.report import UsageReport
from service.quota.usage_store import (
    HOLD_SECONDS,
    SEQUENCE_SECONDS,
    Claim,
    Claims,
    Gap,
    Refused,
    Reply,
    Totals,
    UsageStore,
)
from service.redis.client import RedisStore
from service.redis.connections import open_client
from service.redis.errors import StoreUnavailable
from tests.contract.conftest import Backend
from tests.support.usage import UsageWorker, count

# 2026-11-20 and 2026-12-01
DAY, NEXT_MONTH = 20_777, 20_788
RECORD = "u:{a}:2026-11"
HOURS = "u:{a}:2026-11-20"
HOLDS = "s:held:{a}"
# The rights that were enough before hours were counted.
COUNTING = "+evalsha +script|load +hget +hset +hincrby +hdel +time ~u:* ~s:*"


def batch(number: int, amount: int = 1, outcome: UsageOutcome = "answered", day: int = DAY) -> UsageBatch:
    return UsageBatch(number, ((day, "forecast", outcome, amount),))


@pytest.fixture
def usage(redis: RedisStore) -> UsageStore:
    return UsageStore(redis)


@asynccontextmanager
async def user_with(real: Backend, rights: str) -> AsyncIterator[RedisStore]:
    """The server as a user sees it who has these rights; the server knows no script."""
    real.command("ACL", "SETUSER", "usage", "on", ">secret", *rights.split())
    real.command("SCRIPT", "FLUSH")
    url = real.url.replace("unix://", "unix://usage:secret@")
    redis = RedisStore("a store", url, open_client(url, timeout=5))
    yield redis
    await redis.stop()
    real.command("ACL", "DELUSER", "usage")


async def fields(redis: RedisStore, name: str = RECORD) -> dict[str, str]:
    found = await redis.call(lambda client: client.hgetall(name))
    return {str(field, "ascii"): str(value, "ascii") for field, value in found.items()}  # type: ignore[arg-type]  # bytes


async def test_a_batch_is_added_with_its_totals(redis: RedisStore, usage: UsageStore) -> None:
    cells: tuple[tuple[int, str, UsageOutcome, int], ...] = (
        (DAY, "forecast", "answered", 5),
        (DAY, "projects", "answered_empty", 4),
        (DAY, "forecast", "not_modified", 3),
        (DAY, "forecast", "not_found", 2),
        (DAY, "forecast", "rejected", 1),
        (DAY - 1, "forecast", "answered", 7),
    )
    assert await usage.add("w", [("a", UsageBatch(1, cells))], DAY) == [Totals(DAY, 12, 19)]
    assert await fields(redis) == {
        "20:forecast:answered": "5",
        "20:projects:answered_empty": "4",
        "20:forecast:not_modified": "3",
        "20:forecast:not_found": "2",
        "20:forecast:rejected": "1",
        "19:forecast:answered": "7",
        "20:*:billable": "12",
        "19:*:billable": "7",
        "*:*:billable": "19",
    }


async def test_the_same_batch_again_changes_nothing(redis: RedisStore, usage: UsageStore) -> None:
    """The reply is the same; so it is after other workers' batches, and for an older number."""
    for _ in range(3):
        assert await usage.add("w", [("a", batch(7, 2))], DAY) == [Totals(DAY, 2, 2)]
    assert await usage.add("other", [("a", batch(1, 3))], DAY) == [Totals(DAY, 5, 5)]
    assert await usage.add("w", [("a", batch(7, 2))], DAY) == [Totals(DAY, 5, 5)]
    assert await usage.add("w", [("a", batch(6, 9))], DAY) == [Totals(DAY, 5, 5)]
    assert await usage.add("w", [("a", batch(9, 1))], DAY) == [Totals(DAY, 6, 6)]
    assert (await fields(redis))["20:forecast:answered"] == "6"


async def test_a_batch_may_reach_into_other_months(redis: RedisStore, usage: UsageStore) -> None:
    """Totals are those of the day asked for."""
    cells = (*batch(1, 2).cells, *batch(1, 3, day=NEXT_MONTH).cells)
    assert await usage.add("w", [("a", UsageBatch(1, cells))], NEXT_MONTH) == [Totals(NEXT_MONTH, 3, 3)]
    assert (await fields(redis))["*:*:billable"] == "2"
    assert (await fields(redis, "u:{a}:2026-12"))["*:*:billable"] == "3"
    assert await usage.totals("a", DAY) == Totals(DAY, 2, 2)
    assert await usage.totals("a", DAY + 1) == Totals(DAY + 1, 0, 2)


async def test_asking_for_totals_writes_nothing(redis: RedisStore, usage: UsageStore) -> None:
    """Not even for a key that nobody knows."""
    assert await usage.totals("a", DAY) == Totals(DAY, 0, 0)
    assert await usage.add("w", [("a", NO_BATCH)], DAY) == [Totals(DAY, 0, 0)]
    assert await redis.call(lambda client: client.keys("*")) == []


def by_hour(number: int, *hours: int) -> UsageBatch:
    """One answer in each of these hours of the day."""
    cells = tuple((DAY * 24 + hour, "forecast", "answered", 1) for hour in hours)
    return UsageBatch(number, ((DAY, "forecast", "answered", len(hours)),), cells)  # type: ignore[arg-type]  # outcomes


async def test_hours_are_added_with_their_day_and_once(redis: RedisStore, usage: UsageStore) -> None:
    for _ in range(2):
        await usage.add("w", [("a", by_hour(1, 9, 10))], DAY)
    await usage.add("w", [("a", by_hour(2, 10))], DAY)
    assert await fields(redis, HOURS) == {"09:forecast:answered": "1", "10:forecast:answered": "2"}
    assert (await fields(redis))["20:forecast:answered"] == "3"


async def test_hours_expire_eight_days_after_the_last_of_them(redis: RedisStore, usage: UsageStore) -> None:
    for number in (1, 2):
        await usage.add("w", [("a", by_hour(number, 9))], DAY)
        left = await redis.call(lambda client: client.ttl(HOURS))
        assert HOURS_KEPT_DAYS * DAY_SECONDS - 120 < left <= HOURS_KEPT_DAYS * DAY_SECONDS
        await redis.call(lambda client: client.expire(HOURS, 60))


async def test_damaged_hours_keep_nothing_from_being_billed(redis: RedisStore, usage: UsageStore) -> None:
    """A field that is no number, and a record that is no hash. They are reported when they are read."""
    await redis.call(lambda client: client.hset(HOURS, "10:forecast:answered", "many"))
    assert await usage.add("w", [("a", by_hour(1, 9, 10, 11))], DAY) == [Totals(DAY, 3, 3)]
    assert await fields(redis, HOURS) == {
        "09:forecast:answered": "1",
        "10:forecast:answered": "many",
        "11:forecast:answered": "1",
    }
    await redis.call(lambda client: client.lpush("u:{b}:2026-11-20", "x"))
    assert await usage.add("w", [("b", by_hour(1, 9))], DAY) == [Totals(DAY, 1, 1)]
    await redis.call(lambda client: client.hset("u:{c}:2026-11-20", "24:forecast:answered", "1"))
    for key_id, reason in (("a", "holds b'many'"), ("b", "WRONGTYPE"), ("c", "has hour 24")):
        with pytest.raises(StoreUnavailable, match=f"2026-11-20.*{reason}"):
            await UsageReport(redis).hours_of_key(key_id, date_of(DAY - 1), date_of(DAY))


async def test_without_the_right_to_let_hours_expire_none_are_kept(real: Backend) -> None:
    """Rights of an earlier version: what is billed is counted all the same."""
    async with user_with(real, f"{COUNTING} +hgetall") as redis:
        assert await UsageStore(redis).add("w", [("a", by_hour(1, 9))], DAY) == [Totals(DAY, 1, 1)]
        assert await fields(redis, HOURS) == {}


async def test_keys_are_independent(redis: RedisStore, usage: UsageStore) -> None:
    """One that is damaged, of the wrong type, or has a damaged sequence is refused by itself, and unchanged."""
    await redis.call(lambda client: client.hset(RECORD, "20:forecast:answered", "many"))
    await redis.call(lambda client: client.lpush("u:{b}:2026-11", "x"))
    await redis.call(lambda client: client.hset("s:{c}", "w", "x"))
    await redis.call(lambda client: client.hset("u:{d}:2026-11", "*:*:billable", "-3"))
    await redis.call(lambda client: client.hset("s:{e}", "w", f"{10**29}:1"))
    replies = await usage.add("w", [(key_id, batch(1)) for key_id in "abcdef"], DAY)
    reasons = [reply.reason if isinstance(reply, Refused) else "" for reply in replies]
    assert "u:{a}:2026-11 20:forecast:answered holds many" in reasons[0]
    assert "WRONGTYPE" in reasons[1]
    assert "s:{c} w holds x" in reasons[2]
    assert "u:{d}:2026-11 *:*:billable holds -3" in reasons[3]
    assert "s:{e} w holds 1000" in reasons[4]
    assert replies[5] == Totals(DAY, 1, 1)
    assert await fields(redis) == {"20:forecast:answered": "many"}
    assert await redis.call(lambda client: client.exists("s:{a}", "s:{b}", "s:{d}", "u:{c}:2026-11")) == 0


async def test_a_refused_batch_changes_nothing_of_it(redis: RedisStore, usage: UsageStore) -> None:
    """Also where only its last field is damaged: sent again after mending, all of it is added, once."""
    await redis.call(lambda client: client.hset(RECORD, "20:projects:answered", "1e3"))
    both = UsageBatch(1, ((DAY, "forecast", "answered", 1), (DAY, "projects", "answered", 1)))
    [refused] = await usage.add("w", [("a", both)], DAY)
    assert isinstance(refused, Refused)
    assert await fields(redis) == {"20:projects:answered": "1e3"}
    await redis.call(lambda client: client.hset(RECORD, "20:projects:answered", "3"))
    assert await usage.add("w", [("a", both)], DAY) == [Totals(DAY, 2, 2)]
    assert (await fields(redis))["20:projects:answered"] == "4"


async def test_damaged_totals_are_unavailable(redis: RedisStore, usage: UsageStore) -> None:
    await redis.call(lambda client: client.hset(RECORD, "*:*:billable", "x"))
    with pytest.raises(StoreUnavailable, match="billable holds x"):
        await usage.totals("a", DAY)


async def test_sequences_of_workers_long_gone_are_forgotten(redis: RedisStore, usage: UsageStore) -> None:
    """When another worker appears; those that may still send something again are kept."""
    now = int(time.time())
    old, young = now - SEQUENCE_SECONDS - 60, now - SEQUENCE_SECONDS + 60
    sequences: dict[Any, Any] = {"old": f"5:{old}", "young": f"5:{young}", "odd": "x"}
    await redis.call(lambda client: client.hset("s:{a}", mapping=sequences))
    await usage.add("young", [("a", batch(5))], DAY)
    assert set(await fields(redis, "s:{a}")) == {"old", "young", "odd"}
    await usage.add("new", [("a", batch(1))], DAY)
    assert set(await fields(redis, "s:{a}")) == {"new", "young", "odd"}
    await usage.add("young", [("a", batch(5))], DAY)
    assert (await usage.totals("a", DAY)).of_day == 1


async def test_on_one_connection_each_call_has_its_reply(real: Backend) -> None:
    """A batch, its repetition, one that is refused, totals alone, a script that was forgotten, several at once, and a
    key whose id is not in ASCII; and the user who may SCRIPT LOAD, and not EVAL."""

    async with user_with(real, f"{COUNTING} +hgetall") as redis:
        usage = UsageStore(redis)

        async def added(key_id: str, one: UsageBatch, worker_id: str = "w") -> Reply:
            [reply] = await usage.add(worker_id, [(key_id, one)], DAY)
            return reply

        assert await added("a", batch(1)) == Totals(DAY, 1, 1)
        own = redis.line._connection
        assert await added("a", batch(2, 3)) == Totals(DAY, 4, 4)
        assert await added("a", batch(2, 3)) == Totals(DAY, 4, 4)
        assert await added("a", NO_BATCH, "") == Totals(DAY, 4, 4)
        real.command("HSET", "u:{b}:2026-11", "20:*:billable", "x")
        refused = await added("b", batch(3))
        assert isinstance(refused, Refused)
        assert "DAMAGED" in refused.reason
        real.command("SCRIPT", "FLUSH")
        first, second = await asyncio.gather(added("a", batch(4)), added("c", batch(5)))
        assert (first, second) == (Totals(DAY, 5, 5), Totals(DAY, 1, 1))
        assert await usage.add("w", [("é", batch(1)), ("d", batch(2))], DAY) == [Totals(DAY, 1, 1)] * 2
        assert await usage.add("w", [], DAY) == []
        assert redis.line._connection is own


async def store_up_to(usage: UsageStore, number: int) -> ConfirmedBatches:
    """Batches of the worker `w` that the store has confirmed."""
    kept = ConfirmedBatches()
    for each in range(1, number + 1):
        await usage.add("w", [("a", batch(each))], DAY, kept)
        kept.add("a", batch(each))
    return kept


async def lose(redis: RedisStore, last: int) -> None:
    """As on a replica that had no more when it became the primary."""
    await redis.call(lambda client: client.hset("s:{a}", "w", f"{last}:{int(time.time())}"))
    await redis.call(lambda client: client.hset(RECORD, "20:*:billable", str(last)))
    await redis.call(lambda client: client.hset(RECORD, "*:*:billable", str(last)))


async def test_a_store_that_lacks_the_batch_before_adds_nothing(redis: RedisStore, usage: UsageStore) -> None:
    """It says which one is its last; so it does if nothing is to be added."""
    kept = await store_up_to(usage, 3)
    await lose(redis, 1)
    gap = Gap(1, Totals(DAY, 1, 1))
    assert await usage.add("w", [("a", batch(4))], DAY, kept) == [gap]
    assert await usage.add("w", [("a", NO_BATCH)], DAY, kept) == [gap]
    assert [each.number for each in kept.lost("a", gap.last).batches] == [2, 3]
    for number in (2, 3, 4):
        assert await usage.add("w", [("a", batch(number))], DAY, kept) == [Totals(DAY, number, number)]


async def test_a_store_that_lacks_nothing_takes_the_next_batch(usage: UsageStore) -> None:
    kept = await store_up_to(usage, 2)
    assert await usage.add("w", [("a", batch(7))], DAY, kept) == [Totals(DAY, 3, 3)]
    assert await usage.add("w", [("a", batch(7))], DAY, kept) == [Totals(DAY, 3, 3)]


async def test_nothing_is_sent_again_to_a_store_that_was_emptied(redis: RedisStore, usage: UsageStore) -> None:
    """An import may bring it back. Whether somebody read the store before makes no difference."""
    kept = await store_up_to(usage, 2)
    await redis.call(lambda client: client.flushall())
    assert await usage.totals("a", DAY) == Totals(DAY, 0, 0)
    assert await usage.add("other", [("a", batch(1))], DAY) == [Totals(DAY, 1, 1)]
    assert await usage.add("w", [("a", batch(3))], DAY, kept) == [Totals(DAY, 2, 2)]
    assert kept.held() == []


async def test_nothing_that_bills_are_made_of_expires(redis: RedisStore, usage: UsageStore) -> None:
    await usage.add("w", [("a", batch(1))], DAY)
    names = await redis.call(lambda client: client.keys("*"))
    assert sorted(names) == [b"s:store", b"s:{a}", b"u:{a}:2026-11"]
    for name in names:
        assert await redis.call(lambda client, one=name: client.ttl(one)) == -1  # type: ignore[misc]


def claims(carried: int, wanted: int, quota: int = 10) -> Claims:
    return lambda *_: Claim(Quota(quota, "day"), carried, wanted, 0.0)


async def granted(usage: UsageStore, worker: str, carried: int, wanted: int, sent: UsageBatch = NO_BATCH) -> int:
    [reply] = await usage.add(worker, [("a", sent)], DAY, None, claims(carried, wanted))
    assert isinstance(reply, Totals)
    return reply.granted


async def test_the_total_and_what_all_workers_hold_are_never_more_than_the_quota(
    redis: RedisStore, usage: UsageStore
) -> None:
    """A hold is absolute: the same call again changes nothing, and the next one replaces it."""
    assert await granted(usage, "w", 0, 4) == 4
    assert await granted(usage, "v", 1, 9) == 5
    assert await granted(usage, "u", 0, 1) == 0
    for _ in range(2):
        assert await granted(usage, "w", 1, 2, batch(1, 3)) == 0
    assert (await fields(redis, HOLDS))["sum"] == "7"
    assert await granted(usage, "v", 0, 2) == 2
    assert await granted(usage, "w", 0, 9, batch(2, 1)) == 4
    assert await granted(usage, "w", 0, 0, batch(3, 4)) == 0
    assert await granted(usage, "v", 0, 0, batch(1, 2)) == 0
    assert await granted(usage, "w", 0, 1) == 0
    assert await fields(redis, HOLDS) == {"sum": "0"}
    assert await usage.totals("a", DAY) == Totals(DAY, 10, 10)


async def test_more_than_the_quota_may_be_carried_but_nothing_is_granted(redis: RedisStore, usage: UsageStore) -> None:
    """After an outage, or for a smaller quota."""
    assert await granted(usage, "w", 12, 1) == 0
    assert (await fields(redis, HOLDS))["sum"] == "12"
    assert await granted(usage, "v", 0, 1) == 0


async def test_holds_that_ended_or_are_damaged_are_dropped_when_something_is_lacking(
    redis: RedisStore, usage: UsageStore
) -> None:
    assert await granted(usage, "w", 0, 8) == 8
    now = int(time.time())
    for worker, hold in (("w", f"8:{now - 1}"), ("x", "many"), ("live", f"1:{now + 60}")):
        await redis.call(lambda client, name=worker, text=hold: client.hset(HOLDS, name, text))  # type: ignore[misc]
    assert await granted(usage, "v", 0, 2) == 2
    assert set(await fields(redis, HOLDS)) == {"w", "x", "live", "v", "sum"}
    assert await granted(usage, "u", 0, 9) == 7
    assert set(await fields(redis, HOLDS)) == {"live", "u", "v", "sum"}
    await redis.call(lambda client: client.hset(HOLDS, "sum", "x"))
    assert await granted(usage, "u", 0, 9) == 7


async def test_the_record_of_holds_expires_a_moment_after_the_last(redis: RedisStore, usage: UsageStore) -> None:
    assert await granted(usage, "w", 0, 8) == 8
    assert 0 < await redis.call(lambda client: client.ttl(HOLDS)) <= HOLD_SECONDS + 1


async def test_a_refused_batch_grants_nothing(redis: RedisStore, usage: UsageStore) -> None:
    await redis.call(lambda client: client.hset(RECORD, "20:forecast:answered", "many"))
    [refused] = await usage.add("w", [("a", batch(1))], DAY, None, claims(0, 1))
    assert isinstance(refused, Refused)
    await redis.call(lambda client: client.lpush("s:held:{b}", "x"))
    [refused] = await usage.add("w", [("b", batch(2))], DAY, None, claims(0, 1))
    assert isinstance(refused, Refused)
    assert await redis.call(lambda client: client.exists(HOLDS, "u:{b}:2026-11", "s:{b}")) == 0


async def test_a_quota_of_a_month_counts_all_its_days(usage: UsageStore) -> None:
    await usage.add("w", [("a", batch(1, 9, day=DAY - 1))], DAY)
    assert await granted(usage, "w", 0, 10) == 10
    month = Claim(Quota(10, "month"), 0, 10, 0.0)
    assert await usage.add("w", [("a", NO_BATCH)], DAY, None, lambda *_: month) == [Totals(DAY, 0, 9, 1, month)]


async def test_a_full_server_refuses_and_changes_nothing(real: Backend) -> None:
    redis = real.store(timeout=5)
    usage = UsageStore(redis)
    real.command("CONFIG", "SET", "maxmemory", "1")
    try:
        [refused] = await usage.add("w", [("a", batch(1))], DAY)
    finally:
        real.command("CONFIG", "SET", "maxmemory", "0")
    assert isinstance(refused, Refused)
    assert "it is full" in refused.reason
    assert await usage.add("w", [("a", batch(1))], DAY) == [Totals(DAY, 1, 1)]
    await redis.stop()


async def test_a_quota_is_judged_by_what_is_stored_where_nothing_can_be_added(real: Backend, tmp_path: Path) -> None:
    """The store is full, and a worker that knew nothing of the key has counts that wait."""
    worker = UsageWorker(real.client(5), tmp_path)
    today = int(worker.clock()) // DAY_SECONDS
    await worker.store.add("another", [("a", batch(1, 5, day=today))], today)
    real.command("CONFIG", "SET", "maxmemory", "1")
    try:
        count(worker)
        state = await worker.quotas.standing("a", Quota(100, "day"))
        assert (state.used, worker.counters.waits) == (6, 1)
    finally:
        real.command("CONFIG", "SET", "maxmemory", "0")
    await worker.flusher.flush()
    assert (await worker.store.totals("a", today)).of_day == 6
    await worker.client.aclose()
