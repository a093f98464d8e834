"""The shared cache: whatever is wrong with it is a miss. What real servers do is in tests/contract."""

import asyncio
import logging
from functools import partial

import pytest
from fakeredis import FakeAsyncRedis, FakeServer

from service.cache.entry import CacheEntry, encode_entry
from service.cache.key import CacheKey, cache_key
from service.cache.shared import SharedCache, SharedLookup, SharedOutcome
from tests.support.redis_double import DoubledStore, WiredStore
from tests.support.waiting import settled

KEY = cache_key("r1", "forecast", "zip:36436")
ENTRY = CacheEntry.of(b"{}")


def _cache(client: FakeAsyncRedis) -> SharedCache:
    return SharedCache(DoubledStore(client), 60)


@pytest.mark.parametrize(
    "stored", [b"", b"nonsense", encode_entry(ENTRY, b"0" * 16), encode_entry(ENTRY, KEY.digest)[:-1]]
)
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


async def test_whoever_asks_without_waiting_is_told_once_and_later() -> None:
    """What `get` would give, by its side in the same command; never before `ask` has returned."""
    client = FakeAsyncRedis()
    cache = _cache(client)
    missing, damaged = cache_key("r1", "forecast", "zip:00501"), cache_key("r1", "forecast", "zip:63101")
    assert await cache.put(KEY, ENTRY)
    await client.set(damaged.name, b"nonsense")
    told: list[tuple[CacheKey, SharedOutcome, CacheEntry | None]] = []
    keys = [missing, KEY, damaged, KEY]
    for key in keys:
        cache.ask(key, partial(_note, told, key))
    assert told == []
    assert (await cache.get(KEY)).entry == ENTRY
    assert told == [(missing, "miss", None), (KEY, "hit", ENTRY), (damaged, "damaged", None), (KEY, "hit", ENTRY)]


def _note(told: list[tuple[CacheKey, SharedOutcome, CacheEntry | None]], key: CacheKey, lookup: SharedLookup) -> None:
    told.append((key, lookup.outcome, lookup.entry))


async def test_a_store_that_is_away_is_unavailable_and_not_a_miss() -> None:
    """Those who wait are told so, and those who do not: the answer then says that the cache was passed by."""
    server = FakeServer()
    server.connected = False
    cache = _cache(FakeAsyncRedis(server=server))
    told: list[tuple[CacheKey, SharedOutcome, CacheEntry | None]] = []
    cache.ask(KEY, partial(_note, told, KEY))
    assert await cache.get(KEY) == SharedLookup("unavailable")
    assert told == [(KEY, "unavailable", None)]


async def test_when_the_store_is_stopped_nobody_is_left_waiting() -> None:
    """Whoever asked before, and whoever asks after."""
    store = WiredStore()
    cache = SharedCache(store, 60)
    told: list[tuple[CacheKey, SharedOutcome, CacheEntry | None]] = []
    cache.ask(KEY, partial(_note, told, KEY))
    await settled()
    await store.stop()
    assert await cache.get(KEY) == SharedLookup("unavailable")
    assert told == [(KEY, "unavailable", None)]


async def test_a_waiting_caller_that_goes_away_harms_nobody() -> None:
    """Its look-up is not its own."""
    cache = _cache(FakeAsyncRedis())
    assert await cache.put(KEY, ENTRY)
    gone, stays = (asyncio.create_task(cache.get(KEY)) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    assert (await stays).entry == ENTRY
    assert gone.cancelled()
