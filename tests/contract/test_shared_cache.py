"""SharedCache over every server and cluster: what was put is got, until it is evicted, and nothing else ever is."""

import asyncio
from typing import Any

import pytest

from service.cache.entry import CacheEntry, encode_entry
from service.cache.key import CacheKey, cache_key
from service.cache.shared import SharedCache
from service.redis.opening import CacheStore
from service.redis.pipelined import anything
from tests.contract.conftest import Backend

TTL = 600
KEY = cache_key("r1", "forecast", "zip:36436")
SMALL, LARGE = CacheEntry.of(b'{"total_results":0}'), CacheEntry.of(bytes(range(256)) * 2000)


@pytest.fixture
def cache(anywhere: CacheStore) -> SharedCache:
    return SharedCache(anywhere, TTL)


async def reported(store: CacheStore, command: str, *words: str | bytes) -> Any:
    return await store.send(KEY.name, (command, KEY.name, *words), anything)


@pytest.mark.parametrize("entry", [SMALL, LARGE, CacheEntry.of(b"")], ids=["small", "large", "empty"])
async def test_what_was_put_is_got(cache: SharedCache, entry: CacheEntry) -> None:
    assert (await cache.get(KEY)).outcome == "miss"
    assert await cache.put(KEY, entry)
    found = await cache.get(KEY)
    assert (found.outcome, found.entry) == ("hit", entry)


async def test_an_entry_is_garbage_after_its_time(anywhere: CacheStore, cache: SharedCache) -> None:
    """Every entry has a time to live: on a shared server only those may be evicted."""
    await cache.put(KEY, SMALL)
    assert 0 < await reported(anywhere, "TTL") <= TTL


async def test_an_entry_of_another_question_is_never_served(anywhere: CacheStore, cache: SharedCache) -> None:
    other = cache_key("r1", "forecast", "zip:00501")
    await reported(anywhere, "SET", encode_entry(SMALL, other.digest))
    found = await cache.get(KEY)
    assert (found.outcome, found.entry) == ("damaged", None)


async def test_two_releases_share_nothing(cache: SharedCache) -> None:
    """The release is part of the key."""
    await cache.put(KEY, SMALL)
    assert (await cache.get(cache_key("r2", "forecast", "zip:36436"))).outcome == "miss"


async def test_a_value_of_another_type_is_a_miss(anywhere: CacheStore, cache: SharedCache) -> None:
    await reported(anywhere, "LPUSH", "x")
    assert (await cache.get(KEY)).outcome == "miss"
    assert await cache.put(KEY, SMALL)
    assert (await cache.get(KEY)).entry == SMALL


async def test_many_at_once_get_each_their_own(cache: SharedCache) -> None:
    made = {cache_key("r1", "forecast", str(number)): CacheEntry.of(str(number).encode()) for number in range(100)}

    async def round_trip(key: CacheKey, entry: CacheEntry) -> bool:
        await cache.put(key, entry)
        return (await cache.get(key)).entry == entry

    assert all(await asyncio.gather(*(round_trip(key, entry) for key, entry in made.items())))


async def test_a_full_server_stores_nothing_and_still_answers(real: Backend) -> None:
    """It refuses to write, which opens no circuit: what it has is still served."""
    store = real.store()
    cache = SharedCache(store, TTL)
    assert await cache.put(KEY, SMALL)
    real.command("CONFIG", "SET", "maxmemory", "1")
    try:
        for number in range(5):
            assert not await cache.put(cache_key("r1", "forecast", str(number)), SMALL)
        assert (await cache.get(KEY)).entry == SMALL
    finally:
        real.command("CONFIG", "SET", "maxmemory", "0")
        await store.stop()
