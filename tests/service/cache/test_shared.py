"""The shared cache: whatever is wrong with it is a miss. What real servers do is in tests/contract."""

import logging

import pytest
from fakeredis import FakeAsyncRedis

from service.cache.entry import CacheEntry, encode
from service.cache.key import cache_key
from service.cache.shared import SharedCache
from service.redis.client import RedisStore

KEY = cache_key("r1", "forecast", "zip:36436")
ENTRY = CacheEntry.of(b"{}")


def _cache(client: FakeAsyncRedis) -> SharedCache:
    return SharedCache(RedisStore("cache", "redis://fake", client), 60)


@pytest.mark.parametrize("stored", [b"", b"nonsense", encode(ENTRY, b"0" * 16), encode(ENTRY, KEY.digest)[:-1]])
async def test_what_is_not_the_entry_asked_for_is_damaged_and_logged(
    stored: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """It is not served."""
    client = FakeAsyncRedis()
    await client.set(KEY.name, stored)
    with caplog.at_level(logging.WARNING):
        found = await _cache(client).get(KEY)
    assert (found.outcome, found.entry) == ("damaged", None)
    assert "not served" in caplog.text


async def test_a_new_entry_replaces_a_damaged_one() -> None:
    """The next look-up hits."""
    client = FakeAsyncRedis()
    await client.set(KEY.name, b"nonsense")
    cache = _cache(client)
    assert await cache.put(KEY, ENTRY)
    assert (await cache.get(KEY)).entry == ENTRY
