"""The shared cache: whatever is wrong with it is a miss. What real servers do is in tests/contract."""

import logging

import pytest
from fakeredis import FakeAsyncRedis, FakeServer

from service.cache.key import cache_key
from service.cache.shared import SharedCache, SharedLookup
from tests.support.redis_double import DoubledStore

KEY = cache_key("r1", "forecast", "zip:36436")


def _cache(client: FakeAsyncRedis) -> SharedCache:
    return SharedCache(DoubledStore(client), 60)


async def test_a_damaged_entry_is_not_served_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    client = FakeAsyncRedis()
    await client.set(KEY.name, b"nonsense")
    with caplog.at_level(logging.WARNING):
        found = await _cache(client).get(KEY)
    assert (found.outcome, found.entry) == ("damaged", None)
    assert "not served" in caplog.text


async def test_an_unreachable_store_is_unavailable_and_not_a_miss() -> None:
    server = FakeServer()
    server.connected = False
    assert await _cache(FakeAsyncRedis(server=server)).get(KEY) == SharedLookup("unavailable")
