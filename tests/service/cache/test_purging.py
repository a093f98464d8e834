"""The shared cache emptied, on a real server."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from service.cache.key import cache_key
from service.cache.purging import purge_shared
from service.redis.errors import StoreUnavailable
from tests.support.valkey import ValkeyProcess

OTHERS = {"k:{abc}": "a key", "u:2026-11": "usage", "cache": "somebody else's"}


@pytest.fixture
def server(short: Path) -> Iterator[ValkeyProcess]:
    running = ValkeyProcess(short / "cache").start()
    yield running
    running.kill()


async def test_entries_of_all_releases_go_and_nothing_else(server: ValkeyProcess) -> None:
    """More than one command looks at, and of other formats too."""
    names = [cache_key(release, "forecast", str(number)).name for release in ("a", "b") for number in range(700)]
    with redis.Redis(unix_socket_path=str(server.socket), decode_responses=True) as client:
        client.mset({**dict.fromkeys([*names, "c:1:old:ff"], "x"), **OTHERS})
        assert await purge_shared(server.url) == len(names) + 1
        assert set(client.keys()) == set(OTHERS)
    assert await purge_shared(server.url) == 0


async def test_a_cache_that_is_away_cannot_be_purged(server: ValkeyProcess) -> None:
    server.kill()
    with pytest.raises(StoreUnavailable):
        await purge_shared(server.url)
