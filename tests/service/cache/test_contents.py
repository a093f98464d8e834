"""What the shared cache holds, on a real server: counted and looked at without changing anything."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from service.cache.contents import read_entry, survey
from service.cache.entry import CacheEntry, encode_entry
from service.cache.key import TRIAL_NAME, cache_key
from service.redis.client import RedisStore
from service.redis.connections import open_client
from service.redis.errors import StoreUnavailable
from tests.support.valkey import ValkeyProcess

KEY = cache_key("b", "forecast", "zip:36436")
ENTRY = CacheEntry.of(b'{"total_results":1}' * 100)


@pytest.fixture
async def store(server: ValkeyProcess) -> AsyncIterator[RedisStore]:
    opened = RedisStore("shared cache", server.url, open_client(server.url, timeout=5))
    yield opened
    await opened.stop()


@pytest.fixture
def client(server: ValkeyProcess) -> Iterator[Any]:
    with redis.Redis.from_url(server.url) as opened:
        opened.config_set("maxmemory-policy", "allkeys-lfu")
        yield opened


async def test_entries_are_counted_by_release(store: RedisStore, client: Any) -> None:
    names = {release: [cache_key(release, "forecast", str(number)).name for number in range(700)] for release in "ab"}
    for release, size in (("a", 300), ("b", 3000)):
        client.mset(dict.fromkeys(names[release], "x" * size))
    client.mset({"c:1:old:ff": "x", TRIAL_NAME: "", "k:{abc}": "a key"})
    reported: list[int] = []
    found = await survey(store, 60.0, reported.append)
    assert found.complete
    assert [(one.release, one.entries) for one in found.releases] == [("b", 700), ("a", 700), (None, 1)]
    sizes = [one.bytes for one in found.releases]
    assert sizes[0] is not None
    assert sizes[1] is not None
    assert 700 * 3000 < sizes[0] < 700 * 4500
    assert 700 * 300 < sizes[1] < 700 * 450
    assert reported[-1] == 1401
    assert (found.server.policy, found.server.limit, found.server.names) == ("allkeys-lfu", None, 1403)


async def test_counting_ends_in_time(store: RedisStore, client: Any) -> None:
    client.mset({cache_key("a", "forecast", str(number)).name: "x" for number in range(2000)})
    found = await survey(store, 0.0, lambda _: None)
    assert not found.complete
    assert 0 < found.releases[0].entries < 2000


async def test_an_unreachable_server_of_a_cluster_is_skipped_and_named(
    store: RedisStore, client: Any, monkeypatch: pytest.MonkeyPatch, short: Path
) -> None:
    client.set(KEY.name, "x")
    url = f"unix://{short / 'nobody'}"
    gone = RedisStore("shared cache node b", url, open_client(url, timeout=5))
    monkeypatch.setattr(RedisStore, "servers", (gone, store))
    found = await survey(store, 60.0, lambda _: None)
    assert ([one.entries for one in found.releases], found.complete) == ([1], True)
    assert ["shared cache node b" in why for why in found.away] == [True]
    await gone.stop()


async def test_an_entry_is_looked_at_as_a_worker_does(store: RedisStore, client: Any) -> None:
    assert not (await read_entry(store, KEY)).damaged
    client.set(KEY.name, encode_entry(ENTRY, KEY.digest), ex=60)
    held = await read_entry(store, KEY)
    assert held.entry == ENTRY
    assert held.seconds is not None
    assert 50 < held.seconds <= 60
    client.set(KEY.name, encode_entry(ENTRY, KEY.digest)[:-1] + b"?")
    held = await read_entry(store, KEY)
    assert (held.entry, held.damaged, held.seconds) == (None, True, None)


async def test_looking_does_not_count_as_a_use(store: RedisStore, client: Any) -> None:
    """The server would keep an entry longer than others because an operator looked at it."""
    client.config_set("lfu-log-factor", 0)  # every use counts
    client.set(KEY.name, encode_entry(ENTRY, KEY.digest))
    before = client.object("freq", KEY.name)
    for _ in range(5):
        assert not (await read_entry(store, KEY)).counted
    assert client.object("freq", KEY.name) == before
    client.get(KEY.name)
    assert client.object("freq", KEY.name) == before + 1


async def test_a_server_that_cannot_look_without_counting_is_reported(server: ValkeyProcess, client: Any) -> None:
    """As Redis before 7.2, or one where the user may not."""
    client.execute_command("ACL", "SETUSER", "reader", "on", ">p", "+@all", "-client|no-touch", "-pttl", "~*")
    client.set(KEY.name, encode_entry(ENTRY, KEY.digest), ex=60)
    url = server.url.replace("unix://", "unix://reader:p@")
    store = RedisStore("shared cache", url, open_client(url, timeout=5))
    held = await read_entry(store, KEY)
    assert (held.entry, held.counted, held.seconds) == (ENTRY, True, None)
    await store.stop()


async def test_an_unreachable_or_refusing_cache_is_an_error(
    server: ValkeyProcess, store: RedisStore, client: Any
) -> None:
    client.execute_command("ACL", "SETUSER", "nobody", "on", ">p", "+ping", "+client", "+select", "+info", "~*")
    url = server.url.replace("unix://", "unix://nobody:p@")
    refused = RedisStore("shared cache", url, open_client(url, timeout=5))
    for ask in (survey(refused, 1.0, lambda _: None), read_entry(refused, KEY)):
        with pytest.raises(StoreUnavailable, match=r"operate/rights\.md"):
            await ask
    await refused.stop()
    server.kill()
    for ask in (survey(store, 1.0, lambda _: None), read_entry(store, KEY)):
        with pytest.raises(StoreUnavailable):
            await ask
