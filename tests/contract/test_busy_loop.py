"""A store that answers at once is not taken for a slow one because this process is busy: each turn of its loop may take
longer than the time for a reply."""

import asyncio
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest
import uvloop

from service.redis.client import RedisStore
from service.redis.errors import StoreUnavailable
from service.redis.invalidation import InvalidationListener
from service.redis.name_store import NameCommand
from service.redis.opening import CacheStore, cache_place, open_cache
from service.redis.pipelined import value
from service.redis.primary import Primary
from tests.contract.conftest import Backend
from tests.support.cluster import Cluster
from tests.support.waiting import eventually

_LIMIT, _TURN = 0.04, 0.06  # seconds
LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}


@contextmanager
def busy() -> Iterator[None]:
    """Each turn of the loop takes long, where it reads from connections."""
    read, write = socket.socketpair()
    write.send(b"there is always something to read")
    running = asyncio.get_running_loop()
    running.add_reader(read, time.sleep, _TURN)
    try:
        yield
    finally:
        running.remove_reader(read)
        read.close()
        write.close()


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> Callable[[], asyncio.AbstractEventLoop]:
    return LOOPS[request.param]


@pytest.fixture(params=["valkey", "cluster"])
def url(request: pytest.FixtureRequest) -> str:
    if request.param == "cluster":
        cluster: Cluster = request.getfixturevalue("cluster")
        cluster.empty()
        return cluster.url
    server: Backend = request.getfixturevalue("singles")("valkey")
    server.command("FLUSHALL")
    return server.url


async def _misses(store: CacheStore, name: str) -> bool:
    try:
        return await store.send(name, ("GET", name), value) is None
    except StoreUnavailable:
        return False


def test_what_is_asked_in_a_busy_loop_is_answered(url: str, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def run() -> None:
        store = open_cache("a store", cache_place(url), timeout=_LIMIT)
        await store.start()
        names = [f"c:{number}" for number in range(5)]
        try:
            await eventually(lambda: store.healthy)
            for name in names:  # each server has a connection
                await eventually(partial(_misses, store, name))
            with busy():
                for name in names:
                    assert await store.pipelined([NameCommand(name, ("SET", name, b"value"))]) == [b"OK"]
                    assert await store.send(name, ("GET", name), value) == b"value"
                assert not store.is_unreachable
        finally:
            await store.stop()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(run())


def test_a_connection_is_made_in_a_busy_loop(
    singles: Callable[[str], Backend], loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def run() -> None:
        server = singles("valkey")
        store = RedisStore("a store", server.url, server.client(_LIMIT))
        listener = InvalidationListener(Primary(server.url), "k:", lambda _: None, timeout=_LIMIT)
        try:
            with busy():
                assert await store.call(lambda client: client.ping())
                listener.start()
                await eventually(lambda: listener.connected)
        finally:
            await listener.stop()
            await store.stop()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(run())
