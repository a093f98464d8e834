"""Leases over every server: the script decides as gcra.py does, heals what is damaged, and leaves nothing for ever."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from fakeredis import FakeRedis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis as BlockingRedis

from service.base.terms import Rate
from service.quota.gcra import decide, pace_of
from service.quota.lease_store import SCRIPT, LeaseStore, lease_name
from service.redis.client import RedisStore
from tests.contract.conftest import Backend
from tests.support.waiting import eventually

RATE = Rate(10, 60, 5)
NAME = lease_name("k")
FOREVER = 10**16 - 1

rates = st.builds(
    Rate,
    st.integers(1, 1000) | st.integers(1, 10**9 - 1),
    st.sampled_from([1, 60, 3600]),
    st.integers(1, 300) | st.integers(1, 10**9),
)
# microseconds that pass, the rate that is asked for, tokens wanted, whether all or none
steps = st.lists(
    st.tuples(st.integers(0, 10**4) | st.integers(0, 10**10), rates, st.integers(1, 500), st.booleans()),
    min_size=1,
    max_size=12,
)


@pytest.fixture
async def redis(backend: Backend) -> AsyncIterator[RedisStore]:
    store = backend.store()
    yield store
    await store.stop()


@pytest.fixture
def leases(redis: RedisStore) -> LeaseStore:
    return LeaseStore(redis)


def blocking(backend: Backend) -> BlockingRedis:
    return BlockingRedis.from_url(backend.url) if backend.process else FakeRedis(server=backend.double)


# the server is one for all examples; each begins with its own record
@settings(max_examples=75, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=steps, same=st.booleans(), ahead=st.none() | st.integers(-(10**9), 10**15))
def test_the_script_decides_as_gcra_does(
    backend: Backend, steps: list[tuple[int, Rate, int, bool]], same: bool, ahead: int | None
) -> None:
    with blocking(backend) as client:
        script = client.register_script(SCRIPT.text)
        client.delete(NAME)
        bucket = None
        if ahead is not None:
            seconds, micros = client.time()
            bucket = seconds * 1_000_000 + micros + ahead
            client.set(NAME, bucket)
        for number, (passed, any_rate, wanted, together) in enumerate(steps):
            rate = steps[0][1] if same else any_rate
            if bucket is not None:  # time passes: what was granted lies further back
                bucket = max(0, bucket - passed)
                client.set(NAME, bucket, xx=True)
            pace = pace_of(rate)
            least = wanted if together else 1
            *reply, now, call = script(
                keys=[NAME], args=[pace.requests, pace.micros, pace.burst, wanted, least, number]
            )
            outcome = decide(bucket, rate, now, wanted, least)
            assert reply == [outcome.granted, outcome.remaining, outcome.retry_after]
            assert call == number
            bucket = outcome.tat
            stored = client.get(NAME)
            if stored is not None:
                assert max(int(stored), now) == bucket
            else:  # gone, because it had nothing left to say
                seconds, micros = client.time()
                assert bucket <= seconds * 1_000_000 + micros


async def test_a_record_lives_as_long_as_it_says_something(redis: RedisStore, leases: LeaseStore) -> None:
    """Until the bucket is full again, and a second; on a shared server only what has a time to live may be evicted."""
    assert (await leases.lease("k", RATE, 2, 1)).granted == 2
    left = await redis.call(lambda client: client.pttl(NAME))
    assert 12_000 < left <= 13_000


@pytest.mark.parametrize(
    "record",
    ["", "nonsense", "-5", "1.5", "1e300", "inf", "nan", "0x10", " 12", "9" * 40, "٣"],
    ids=["empty", "word", "negative", "fraction", "huge", "infinite", "nan", "hex", "space", "too long", "foreign"],
)
async def test_a_damaged_record_is_a_full_bucket(redis: RedisStore, leases: LeaseStore, record: str) -> None:
    await redis.call(lambda client: client.set(NAME, record))
    assert (await leases.lease("k", RATE, 3, 1)).remaining == 2
    assert (await leases.lease("k", RATE, 3, 1)).granted == 2
    assert await redis.call(lambda client: client.pttl(NAME)) > 0


async def test_a_record_of_another_type_is_a_full_bucket(redis: RedisStore, leases: LeaseStore) -> None:
    await redis.call(lambda client: client.rpush(NAME, "x"))
    assert (await leases.lease("k", RATE, 3, 1)).remaining == 2
    assert (await leases.lease("k", RATE, 3, 1)).granted == 2


async def test_a_record_far_ahead_blocks_for_one_request_at_most(redis: RedisStore, leases: LeaseStore) -> None:
    """It counts as an empty bucket, once: from then on it fills, also while nothing but refusals are answered."""
    fast = Rate(20, 1, 5)
    await redis.call(lambda client: client.set(NAME, FOREVER))
    refusal = await leases.lease("k", fast, 1, 1)
    assert (refusal.granted, refusal.retry_after) == (0, 50_000)
    assert await redis.call(lambda client: client.pttl(NAME)) > 0

    async def granted() -> bool:
        return (await leases.lease("k", fast, 1, 1)).granted == 1

    await eventually(granted)


async def test_a_refusal_changes_nothing(redis: RedisStore, leases: LeaseStore) -> None:
    await leases.lease("k", RATE, 5, 1)
    before = await redis.call(lambda client: client.get(NAME))
    assert (await leases.lease("k", RATE, 4, 1)).granted == 0
    assert await redis.call(lambda client: client.get(NAME)) == before


async def test_workers_share_one_bucket(backend: Backend) -> None:
    """Whatever they ask for at the same time, they get no more than there is."""
    stores = [backend.store() for _ in range(4)]
    workers = [LeaseStore(store) for store in stores]
    answers = await asyncio.gather(*(worker.lease("k", RATE, 1, 1) for worker in workers for _ in range(5)))
    assert sum(answer.granted for answer in answers) == RATE.burst
    for store in stores:
        await store.stop()
