"""Entries of old releases, or of all, removed on a real server."""

import pytest
import redis

from service.cache.key import cache_key
from service.cache.removing import purge_shared, remove_entries
from service.redis.errors import StoreUnavailable
from tests.support.valkey import ValkeyProcess

OLD, OLDER, CURRENT = "20261001T000000Z-01", "20260901T000000Z-01", "20261101T000000Z-01"
OTHERS = {"k:{abc}": "a key", "c:trial": "", f"r:1:{OLD}:x": "a lease", f"c:{OLD}": "somebody else's"}


def names(release: str) -> list[str]:
    """More than one command looks at; one has an earlier format."""
    return [f"c:1:{release}:ff", *(cache_key(release, "forecast", str(number)).name for number in range(700))]


async def test_entries_of_the_named_or_of_all_releases_go_and_nothing_else(server: ValkeyProcess) -> None:
    with redis.Redis(unix_socket_path=str(server.socket), decode_responses=True) as client:
        client.mset({**dict.fromkeys([*names(OLD), *names(OLDER), *names(CURRENT)], "x"), **OTHERS})
        assert await remove_entries(server.url, [OLD, OLDER], 60) == len(names(OLD)) + len(names(OLDER))
        assert set(client.keys()) == {*names(CURRENT), *OTHERS}
        assert await remove_entries(server.url, [OLD], 60) == 0
        client.delete(f"c:{OLD}")
        client.set("cache", "")
        assert await purge_shared(server.url) == len(names(CURRENT))
        assert set(client.keys()) == {*OTHERS, "cache"} - {f"c:{OLD}"}


async def test_it_ends_in_time_and_says_what_is_gone(server: ValkeyProcess) -> None:
    with redis.Redis(unix_socket_path=str(server.socket)) as client:
        client.mset(dict.fromkeys(names(OLD), "x"))
    with pytest.raises(StoreUnavailable, match=r"longer than 0 s; 0 answers"):
        await remove_entries(server.url, [OLD], 0)


async def test_an_unreachable_cache_is_one_error(server: ValkeyProcess) -> None:
    server.kill()
    with pytest.raises(StoreUnavailable, match=r"^the cache removed 0 answers, then: .+$"):
        await remove_entries(server.url, [OLD], 60)
    with pytest.raises(StoreUnavailable):
        await purge_shared(server.url)
