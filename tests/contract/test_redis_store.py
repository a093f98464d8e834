"""RedisStore over every server: replies reach those who asked, refusals are no outage."""

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

from service.redis.client import FAILURES_TO_OPEN, RedisStore
from service.redis.errors import StoreUnavailable
from tests.contract.conftest import Backend


@pytest.fixture
async def store(backend: Backend) -> AsyncIterator[RedisStore]:
    made = backend.store()
    yield made
    await made.stop()


async def test_a_call_gives_the_reply(store: RedisStore) -> None:
    assert not store.healthy
    assert await store.call(lambda client: client.get("x")) is None
    assert store.healthy


async def test_refusals_open_no_circuit(store: RedisStore) -> None:
    await store.call(lambda client: client.lpush("list", "x"))
    for _ in range(3 * FAILURES_TO_OPEN):
        with pytest.raises(StoreUnavailable, match="WRONGTYPE"):
            await store.call(lambda client: client.get("list"))
    assert await store.call(lambda client: client.get("x")) is None
    assert store.healthy


async def test_concurrent_replies_reach_those_who_asked(store: RedisStore) -> None:
    await store.call(lambda client: client.mset({f"k{number}": str(number) for number in range(90)}))
    replies = await asyncio.gather(
        *(store.call(lambda client, at=number: client.get(f"k{at}")) for number in range(90))  # type: ignore[misc]
    )
    assert replies == [str(number).encode() for number in range(90)]


async def test_callers_that_go_away_never_cross_replies(real: Backend) -> None:
    """Cancelled at any moment, by the hundred: those who stay get their own reply, and so does everyone after them."""
    store = real.store()
    chance = random.Random(1)
    await store.call(lambda client: client.mset({f"k{number}": str(number) for number in range(100)}))
    for _ in range(20):
        tasks = [
            asyncio.create_task(store.call(lambda client, at=number: client.get(f"k{at}")))  # type: ignore[misc]
            for number in range(100)
        ]
        for _ in range(chance.randrange(12)):
            await asyncio.sleep(0)
        leaving = set(chance.sample(range(100), 50))
        for number in leaving:
            tasks[number].cancel()
        replies = await asyncio.gather(*tasks, return_exceptions=True)
        assert [replies[number] for number in range(100) if number not in leaving] == [
            str(number).encode() for number in range(100) if number not in leaving
        ]
    assert store.healthy
    await store.stop()
