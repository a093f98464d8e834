"""The cache's own connection over real servers: with whatever the URL asks for, it gives what the client gives."""

import asyncio
import gc
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvloop
from redis import Redis as BlockingRedis
from redis.asyncio import Redis
from redis.exceptions import RedisError

from service.redis.batch import BatchedGet
from service.redis.breaker import FAILURES_TO_OPEN
from service.redis.client import RedisStore, open_client
from service.redis.errors import StoreUnavailable
from service.redis.mget import MgetConnection, MgetError, Values, open_mget
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
            "user without MGET": f"unix://nobody:{PASSWORD}@{socket}",
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


class Counted(RedisStore):
    """How often it was called."""

    calls = 0

    async def call(self, command: Callable[[Redis], Awaitable[Any]]) -> Any:
        self.calls += 1
        return await super().call(command)


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


async def _ask(connection: MgetConnection, names: list[str]) -> Values | MgetError:
    reply: asyncio.Future[Values | MgetError] = asyncio.get_running_loop().create_future()
    connection.ask(names, reply.set_result)
    return await asyncio.wait_for(reply, PATIENCE)


async def _gives_what_the_client_gives(client: Redis) -> None:
    connection = await open_mget(client)
    expected = await client.mget(NAMES)
    assert expected == [*STORED.values(), None, None, STORED["c:a"]]
    for _ in range(3):
        assert await _ask(connection, NAMES) == expected
    commands = [NAMES[at % len(NAMES) :] for at in range(200)]  # one behind the other
    replies = await asyncio.gather(*(_ask(connection, names) for names in commands))
    assert replies == [expected[at % len(NAMES) :] for at in range(200)]
    assert connection.is_open
    connection.close()


@pytest.mark.parametrize("way", WAYS)
async def test_values_are_those_of_the_client(guarded: Guarded, opened: Opened, way: str) -> None:
    """Absent, empty, of another type, large, and such as look like replies; many commands under way."""
    await _gives_what_the_client_gives(opened(guarded.url_of(way)))


async def test_values_are_those_of_the_client_over_tls(tls: TlsServer, opened: Opened) -> None:
    """With a client's certificate."""
    await _gives_what_the_client_gives(opened(tls.url))


@pytest.mark.parametrize("new_loop", [uvloop.new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
def test_look_ups_travel_on_it(guarded: Guarded, new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    """On the loop that workers run on as well: the first one goes by the client, and none after it."""
    url = guarded.url_of("user with the documented rights")

    async def look_up() -> None:
        store = Counted("cache", url, open_client(url, timeout=30))
        batched = BatchedGet(store)
        assert await batched.get("c:a") == b"value"
        await eventually(lambda: batched._own.current is not None)
        gc.collect()
        for _ in range(100):
            assert await batched.get("c:a") == b"value"
        assert store.calls == 1
        await batched.stop()
        await store.stop()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(asyncio.wait_for(look_up(), PATIENCE))


async def test_a_user_without_the_right_is_refused_and_the_connection_stays(guarded: Guarded, opened: Opened) -> None:
    """The reason is the server's. No circuit opens, and a right that is granted later counts at once."""
    url = guarded.url_of("user without MGET")
    store = RedisStore("cache", url, opened(url))
    batched = BatchedGet(store)
    for _ in range(3 * FAILURES_TO_OPEN):
        with pytest.raises(StoreUnavailable, match=r"(?i)no permissions"):
            await batched.get("c:a")
        await eventually(lambda: batched._own.current is not None)
    assert not store.is_away
    with BlockingRedis.from_url(guarded.url_of("password")) as client:
        client.execute_command("ACL", "SETUSER", "nobody", "+mget")
        try:
            assert await batched.get("c:a") == b"value"
        finally:
            client.execute_command("ACL", "SETUSER", "nobody", "-mget")
    await batched.stop()


async def test_a_wrong_password_makes_no_connection(guarded: Guarded, opened: Opened) -> None:
    """As the client's own would not."""
    with pytest.raises(RedisError, match="password"):
        await open_mget(opened(guarded.url_of("wrong password")))


async def test_a_connection_that_the_server_ends_is_opened_again(
    guarded: Guarded, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody who asks later notices."""
    monkeypatch.setattr("service.redis.own_connection.REOPEN_SECONDS", 0)
    url = guarded.url_of("user with the documented rights")
    store = RedisStore("cache", url, opened(url))
    batched = BatchedGet(store)
    assert await batched.get("c:a") == b"value"
    await eventually(lambda: batched._own.current is not None)
    first = batched._own._connection
    assert first is not None
    with BlockingRedis.from_url(guarded.url_of("password")) as client:
        client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    await eventually(lambda: not first.is_open)
    assert store.healthy
    # the client's idle connection was ended as well: it is for the client to notice
    await store.call(lambda client: client.connection_pool.disconnect())
    assert await batched.get("c:a") == b"value"
    await eventually(lambda: batched._own._connection not in {None, first})
    assert await batched.get("c:large") == STORED["c:large"]
    await batched.stop()
