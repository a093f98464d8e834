"""Whether a server keeps what it takes, and what it does when it is full."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from fakeredis import FakeAsyncRedis
from redis import Redis as BlockingRedis

from service.redis.client import RedisStore
from service.redis.connections import open_client
from service.redis.errors import StoreRefused, StoreUnavailable
from service.redis.server import ServerFacts, read_server_facts, wrong_for_cache, wrong_for_keys
from tests.support.valkey import ValkeyProcess

KEEPS = ServerFacts(
    run_id="a",
    version=(7, 2),
    policy="noeviction",
    maxmemory=0,
    used=1000,
    appendonly=True,
    appendfsync="always",
    disk_refuses=False,
    read_only=False,
)


def but(**changes: object) -> ServerFacts:
    return msgspec.structs.replace(KEEPS, **changes)


@pytest.mark.parametrize(
    "server",
    [
        KEEPS,
        but(policy="volatile-lru", maxmemory=1),  # keys have no time to live
        but(appendfsync="everysec"),  # changes are waited for
        but(appendfsync=None),  # nobody may ask
        but(maxmemory=2000),
    ],
)
def test_a_server_that_keeps_keys(server: ServerFacts) -> None:
    assert wrong_for_keys(server) == []


@pytest.mark.parametrize(
    ("server", "word"),
    [
        (but(policy="allkeys-lru"), "Set noeviction"),
        (but(appendonly=False), "appendonly is no"),
        (but(appendfsync="no"), "appendfsync is no"),
        (but(appendfsync="everysec", version=(7, 0)), "appendfsync is everysec"),
        (but(disk_refuses=True), "its disk"),
        (but(read_only=True), "read-only replica"),
        (but(maxmemory=1000), "is full"),
    ],
)
def test_a_server_that_does_not(server: ServerFacts, word: str) -> None:
    (said,) = wrong_for_keys(server)
    assert word in said


def test_a_cache_makes_room() -> None:
    assert wrong_for_cache(KEEPS) == wrong_for_cache(but(policy="allkeys-lfu", maxmemory=1)) == []
    assert "allkeys-lfu" in wrong_for_cache(but(maxmemory=1))[0]
    assert "volatile-lfu" in wrong_for_cache(but(maxmemory=1), shared=True)[0]
    assert "volatile-lfu" in wrong_for_keys(but(policy="allkeys-lfu"), shared=True)[0]


async def test_a_user_that_may_not_ask_is_no_problem(short: Path) -> None:
    process = ValkeyProcess(short / "v", appendonly=True).start()
    try:
        with BlockingRedis.from_url(process.url) as client:
            client.execute_command("ACL", "SETUSER", "worker", "on", ">p", "+ping", "+get", "~k:*")
        url = process.url.replace("unix://", "unix://worker:p@")
        store = RedisStore("key store", url, open_client(url, timeout=30))
        assert await read_server_facts(store) is None
        with BlockingRedis.from_url(process.url) as client:
            client.execute_command("ACL", "SETUSER", "worker", "+info")
        server = await read_server_facts(store)
        assert server is not None
        assert (server.appendonly, server.appendfsync, store.healthy) == (True, None, True)
        await store.stop()
    finally:
        process.kill()


async def test_a_reply_that_makes_no_sense_says_nothing_about_what_was_done() -> None:
    store = RedisStore("key store", "redis://fake", FakeAsyncRedis())

    async def read(_: object) -> None:
        raise TypeError("what a client says about a reply of another type")

    for _ in range(10):
        with pytest.raises(StoreUnavailable, match="unexpected reply") as raised:
            await store.call(read)
        assert not isinstance(raised.value, StoreRefused)
    assert not store.is_unreachable
    await store.stop()


@pytest.mark.parametrize("said", [None, 5, [], {}, {"run_id": 1}, {"run_id": 1, "redis_version": "x"}])
async def test_an_answer_that_makes_no_sense_is_none(said: Any) -> None:
    """Some managed servers leave out what they like."""
    client = FakeAsyncRedis()

    async def info() -> Any:
        return said

    client.info = info  # type: ignore[method-assign,assignment]
    store = RedisStore("key store", "redis://fake", client)
    assert await read_server_facts(store) is None
    await store.stop()
