"""Our own connection over real servers: with whatever the URL asks for, it gives what the client gives."""

import asyncio
import gc
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import uvloop
from redis import Redis as BlockingRedis
from redis.asyncio import Redis

from service.redis.client import FAILURES_TO_OPEN, RedisStore
from service.redis.connections import open_client
from service.redis.errors import StoreRefused, StoreUnavailable
from service.redis.pipelined import value
from service.redis.refusals import WRONG_TYPE
from tests.contract.conftest import program
from tests.support.documented import rights
from tests.support.tls import TlsServer
from tests.support.valkey import ValkeyProcess
from tests.support.waiting import PATIENCE, eventually

PASSWORD = "PASSWORD"
STORED = {
    "c:a": b"value",
    "c:empty": b"",
    "c:lines": b"\r\n$-1\r\n*2\r\n-ERR\r\n",
    "c:bytes": bytes(range(256)),
    "c:large": bytes(range(256)) * 8192,
}
NAMES = [*STORED, "c:nothing", "c:list", "c:a"]
# Redis 7.0 has no such right, nor the command.
_LATER_RIGHTS = ("+client|setinfo", "+client|no-touch", "+waitaof")
WAYS = ("unix socket", "database", "password", "user with the documented rights")


@dataclass(frozen=True)
class Guarded:
    """A server with a password and users. `url_of` says how to get in by each of the ways."""

    process: ValkeyProcess

    def url_of(self, way: str) -> str:
        socket = self.process.socket
        return {
            "unix socket": f"unix://everybody:{PASSWORD}@{socket}",
            "database": f"unix://everybody:{PASSWORD}@{socket}?db=3",
            "password": f"unix://:{PASSWORD}@{socket}",
            "user with the documented rights": f"unix://forecast-cache:{PASSWORD}@{socket}",
            "user without GET": f"unix://nobody:{PASSWORD}@{socket}",
            "wrong password": f"unix://forecast-cache:wrong@{socket}",
        }[way]


@pytest.fixture(scope="module", params=["valkey", "redis-server"])
def guarded(request: pytest.FixtureRequest, short_folder: Path) -> Iterator[Guarded]:
    server = ValkeyProcess(short_folder / f"mget-{request.param}", program=program(request.param)).start()
    made = Guarded(server)
    with BlockingRedis.from_url(server.url) as client:
        unknown = _LATER_RIGHTS if client.info()["redis_version"] < "7.2" else ()
        for line in rights("cache"):
            client.execute_command(*(word for word in line if word not in unknown))
        client.execute_command("ACL", "SETUSER", "everybody", "on", f">{PASSWORD}", "+@all", "~*")
        client.execute_command("ACL", "SETUSER", "nobody", "on", f">{PASSWORD}", "+ping", "~*")
        client.config_set("requirepass", PASSWORD)
    for way in ("unix socket", "database"):
        _fill(made.url_of(way))
    yield made
    server.kill()


@pytest.fixture(scope="module")
def tls(short_folder: Path) -> Iterator[TlsServer]:
    found = shutil.which("redis-server")
    if found is None or shutil.which("openssl") is None:
        pytest.skip("redis-server or openssl is not on the PATH")
    server = TlsServer(short_folder / "mget-tls", found)
    if not server.speaks_tls:
        pytest.skip("this redis-server was built without TLS")
    _fill(server.url)
    yield server
    server.kill()


def _fill(url: str) -> None:
    with BlockingRedis.from_url(url) as client:
        client.mset(STORED)
        client.delete("c:list")
        client.lpush("c:list", "x")


Opened = Callable[[str], Redis]


@pytest.fixture
async def opened() -> AsyncIterator[Opened]:
    """Opens clients, with a generous budget."""
    clients: list[Redis] = []

    def client_of(url: str) -> Redis:
        clients.append(open_client(url, timeout=30))
        return clients[-1]

    yield client_of
    for client in clients:
        await client.aclose(close_connection_pool=True)


async def _get(store: RedisStore, names: list[str]) -> list[object]:
    """The value of each, or why there is none; all are under way at once."""
    answers = [store.send(name, ("GET", name), value) for name in names]
    return await asyncio.wait_for(asyncio.gather(*answers, return_exceptions=True), PATIENCE)


async def _gives_what_the_client_gives(url: str, client: Redis) -> None:
    store = RedisStore("cache", url, client)
    expected = [STORED.get(name) for name in NAMES]
    for _ in range(3):
        found = await _get(store, NAMES * 50)
        wrong_type = found[NAMES.index("c:list")]
        assert isinstance(wrong_type, StoreRefused)
        assert wrong_type.text.startswith(WRONG_TYPE)
        assert [None if isinstance(one, StoreRefused) else one for one in found] == expected * 50
    assert expected == await client.mget(NAMES)
    assert store.line.is_open
    await store.line.stop()


@pytest.mark.parametrize("way", WAYS)
async def test_values_are_those_of_the_client(guarded: Guarded, opened: Opened, way: str) -> None:
    await _gives_what_the_client_gives(guarded.url_of(way), opened(guarded.url_of(way)))


async def test_values_are_those_of_the_client_over_tls(tls: TlsServer, opened: Opened) -> None:
    await _gives_what_the_client_gives(tls.url, opened(tls.url))


@pytest.mark.parametrize("new_loop", [uvloop.new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
def test_one_connection_serves_all_calls(guarded: Guarded, new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    url = guarded.url_of("user with the documented rights")

    async def look_up() -> None:
        store = RedisStore("cache", url, open_client(url, timeout=30))
        assert await _get(store, ["c:a"]) == [b"value"]
        own = store.line._connection
        gc.collect()
        for _ in range(100):
            assert await _get(store, ["c:a"]) == [b"value"]
        assert own is store.line._connection
        await store.stop()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(asyncio.wait_for(look_up(), PATIENCE))


async def test_a_user_without_the_right_is_refused_and_the_connection_stays(guarded: Guarded, opened: Opened) -> None:
    url = guarded.url_of("user without GET")
    store = RedisStore("cache", url, opened(url))
    for _ in range(3 * FAILURES_TO_OPEN):
        [refused] = await _get(store, ["c:a"])
        assert isinstance(refused, StoreRefused)
        assert "no permissions" in str(refused).lower()
    assert not store.is_unreachable
    with BlockingRedis.from_url(guarded.url_of("password")) as client:
        client.execute_command("ACL", "SETUSER", "nobody", "+get")
        try:
            assert await _get(store, ["c:a"]) == [b"value"]
        finally:
            client.execute_command("ACL", "SETUSER", "nobody", "-get")
    await store.line.stop()


async def test_a_wrong_password_makes_no_connection(guarded: Guarded, opened: Opened) -> None:
    url = guarded.url_of("wrong password")
    store = RedisStore("cache", url, opened(url))
    [error] = await _get(store, ["c:a"])
    assert isinstance(error, StoreUnavailable)
    assert "password" in str(error)


async def test_a_connection_that_the_server_ends_is_opened_again(guarded: Guarded, opened: Opened) -> None:
    """Nobody who asks later notices."""
    url = guarded.url_of("user with the documented rights")
    store = RedisStore("cache", url, opened(url))
    assert await _get(store, ["c:a"]) == [b"value"]
    with BlockingRedis.from_url(guarded.url_of("password")) as client:
        client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    await eventually(lambda: not store.line.is_open)
    assert store.healthy
    assert await _get(store, ["c:a", "c:large"]) == [b"value", STORED["c:large"]]
    await store.line.stop()
