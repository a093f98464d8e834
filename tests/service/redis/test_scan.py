"""Names of a store, found step by step."""

from collections.abc import AsyncIterator

import pytest
from fakeredis import FakeAsyncRedis, FakeServer

from service.redis.client import RedisStore
from service.redis.errors import StoreUnavailable


@pytest.fixture
async def client() -> AsyncIterator[FakeAsyncRedis]:
    made = FakeAsyncRedis()
    yield made
    await made.aclose()


async def test_every_name_that_matches_is_found(client: FakeAsyncRedis) -> None:
    ours = {b"u:%d" % number for number in range(50)} | {b"u:\xff"}
    await client.mset(dict.fromkeys(ours | {b"k:1", b"u"}, "x"))
    steps = [names async for names in RedisStore("a store", "redis://fake", client).scan("u:*", 10)]
    assert {name for names in steps for name in names} == ours
    assert len(steps) > 1


async def test_a_store_that_fails_ends_it() -> None:
    server = FakeServer()
    client = FakeAsyncRedis(server=server)
    store = RedisStore("a store", "redis://fake", client)
    await client.mset({f"u:{number}": "x" for number in range(50)})
    steps = aiter(store.scan("u:*", 10))
    assert await anext(steps)
    server.connected = False
    with pytest.raises(StoreUnavailable):
        await anext(steps)
    await client.aclose()
