"""A primary that moved: connections are left, and nothing is asked of a server that is none."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from config.server_lists import Node
from service.redis import client as client_module
from service.redis import primary as primary_module
from service.redis.client import FAILURES_TO_OPEN, RedisStore
from service.redis.errors import StoreRefused, StoreUnavailable
from service.redis.invalidation import InvalidationListener
from service.redis.name_store import NameCommand
from service.redis.pipelined import value
from service.redis.primary import Primary, open_store
from tests.support.network import Machine
from tests.support.sentinel_doubles import SentinelDouble
from tests.support.sentinels import PortServer
from tests.support.waiting import eventually


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PortServer, PortServer]]:
    folder = tmp_path_factory.mktemp("two")
    one, other = PortServer(folder / "one").start(), PortServer(folder / "other").start()
    yield one, other
    one.kill()
    other.kill()


@pytest.fixture
def servers(two: tuple[PortServer, PortServer]) -> tuple[PortServer, PortServer]:
    """Both primaries, with their names in them."""
    for server, name in ((two[0], "one"), (two[1], "other")):
        server.command("REPLICAOF", "NO", "ONE")
        server.command("CONFIG", "SET", "min-replicas-to-write", "0")
        server.command("SET", "name", name)
    return two


@pytest.fixture
async def plain(servers: tuple[PortServer, PortServer]) -> AsyncIterator[RedisStore]:
    """A store at the first server, by its own URL."""
    primary = Primary(servers[0].url)
    await primary.start()
    store = open_store("a store", primary, timeout=5)
    await store.start()
    yield store
    await store.stop()
    await primary.stop()


@pytest.fixture
async def sentinel(servers: tuple[PortServer, PortServer]) -> AsyncIterator[SentinelDouble]:
    double = await SentinelDouble(servers[0].node).start()
    yield double
    double.stop()


@pytest.fixture
async def primary(sentinel: SentinelDouble) -> AsyncIterator[Primary]:
    made = Primary(f"redis+sentinel://{sentinel.node}/keys")
    await made.start()
    yield made
    await made.stop()


async def set_name(store: RedisStore) -> None:
    await store.call(lambda client: client.set("name", "changed"))


async def look_up(store: RedisStore) -> bytes | None:
    return await store.send("name", ("GET", "name"), value)


async def name_at(store: RedisStore) -> object:
    return await store.call(lambda client: client.get("name"))


async def test_a_replica_is_noticed_without_a_request(
    plain: RedisStore, servers: tuple[PortServer, PortServer]
) -> None:
    """It answers reads, which may be old: the store is unreachable until a primary answers at its URL."""
    assert plain.healthy
    servers[0].command("REPLICAOF", "127.0.0.1", servers[1].port)
    await eventually(lambda: plain.is_unreachable)
    assert not plain.healthy
    with pytest.raises(StoreUnavailable):
        await name_at(plain)
    servers[0].command("REPLICAOF", "NO", "ONE")
    await eventually(lambda: plain.healthy)
    assert not plain.is_unreachable


async def test_a_refusal_of_a_replica_is_no_answer_of_the_store(servers: tuple[PortServer, PortServer]) -> None:
    """READONLY says at once that this is not the primary; another store on the URL connects again as well."""
    primary = Primary(servers[0].url)
    store, other = open_store("a store", primary, timeout=5), open_store("another", primary, timeout=5)
    await name_at(store)
    await name_at(other)
    connections = other._client
    servers[0].command("REPLICAOF", "127.0.0.1", servers[1].port)
    with pytest.raises(StoreRefused, match="read-only replica"):
        await set_name(store)
    assert (store.healthy, store.is_unreachable) == (False, True)
    assert other._client is not connections
    for one in (store, other):
        await one.stop()


async def test_a_primary_without_its_replicas_is_doubted_and_serves(
    plain: RedisStore, servers: tuple[PortServer, PortServer]
) -> None:
    """NOREPLICAS: connections are made again, because it may be cut off. If it is still the primary, it is read."""
    connections = plain._client
    servers[0].command("CONFIG", "SET", "min-replicas-to-write", "1")
    with pytest.raises(StoreRefused, match="lost its replicas"):
        await set_name(plain)
    assert plain._client is not connections
    assert await name_at(plain) == b"one"
    assert plain.healthy


async def test_a_pipelined_call_says_it_too(plain: RedisStore, servers: tuple[PortServer, PortServer]) -> None:
    servers[0].command("REPLICAOF", "127.0.0.1", servers[1].port)
    found, error = await plain.pipelined(
        [NameCommand("name", ("GET", "name")), NameCommand("name", ("SET", "name", "changed"))]
    )
    assert found == b"one"
    assert isinstance(error, StoreRefused)
    assert plain.is_unreachable


async def test_all_that_a_store_asks_goes_to_the_new_primary(
    primary: Primary, sentinel: SentinelDouble, servers: tuple[PortServer, PortServer]
) -> None:
    store = open_store("a store", primary, timeout=5)
    await store.start()
    assert await name_at(store) == b"one"
    assert await look_up(store) == b"one"
    sentinel.primary = servers[1].node
    await eventually(lambda: primary.url == servers[1].url)
    assert await name_at(store) == b"other"
    assert await look_up(store) == b"other"
    assert store.healthy
    await store.stop()


async def test_an_unreachable_store_looks_for_its_primary_and_recovers_once_it_is_found(
    servers: tuple[PortServer, PortServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits neither for the next round nor for the next probe."""
    sentinel = await SentinelDouble(Node("127.0.0.1", 1)).start()
    primary = Primary(f"redis+sentinel://{sentinel.node}/keys")
    await primary.start()
    monkeypatch.setattr(primary_module, "ROUND_SECONDS", 600)
    store = open_store("a store", primary, timeout=5)
    await store.start()
    monkeypatch.setattr(client_module, "PROBE_SECONDS", 600)
    assert not store.healthy
    await eventually(lambda: sentinel.asked == 2)  # it is not asked again by itself
    sentinel.primary = servers[1].node
    for _ in range(FAILURES_TO_OPEN):
        with suppress(StoreUnavailable):
            await name_at(store)
    await eventually(lambda: primary.url == servers[1].url)
    await eventually(lambda: store.healthy)
    await store.stop()
    await primary.stop()
    sentinel.stop()


async def test_a_name_that_leads_elsewhere_is_followed_by_every_connection(
    servers: tuple[PortServer, PortServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old server is silent, with connections open, and its name leads to another machine, as after a failover of a
    managed primary."""
    old = servers[0]
    new = PortServer(tmp_path / "new", machine=_Elsewhere())
    new.port, new.node = old.port, Node(_Elsewhere.address, old.port)
    new.start().command("SET", "name", "new")
    leads_to = old.node.host
    resolve = socket.getaddrinfo

    def resolved(host: str, *rest: Any, **options: Any) -> Any:
        return resolve(leads_to if host == "keys.test" else host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    primary = Primary(f"redis://keys.test:{old.port}/0")
    store = open_store("a store", primary, timeout=0.5)
    await store.start()
    assert set(await asyncio.gather(*(name_at(store) for _ in range(20)))) == {b"one"}
    assert await look_up(store) == b"one"
    old.stall()
    try:
        for _ in range(FAILURES_TO_OPEN):
            with pytest.raises(StoreUnavailable):
                await name_at(store)
        leads_to = new.node.host
        await eventually(lambda: store.healthy)
        assert set(await asyncio.gather(*(name_at(store) for _ in range(20)))) == {b"new"}
        assert await look_up(store) == b"new"
    finally:
        old.go_on()
        new.kill()
    await store.stop()
    await primary.stop()


class _Elsewhere(Machine):
    address = "127.0.0.2"


async def test_changes_are_pushed_from_the_new_primary(
    primary: Primary, sentinel: SentinelDouble, servers: tuple[PortServer, PortServer]
) -> None:
    """What changed meanwhile is unknown, so everything may have."""
    reported: list[str | None] = []
    listener = InvalidationListener(primary, "k:", reported.append, timeout=5)
    listener.start()
    await eventually(lambda: listener.connected)
    assert reported == [None]
    sentinel.primary = servers[1].node
    await eventually(lambda: reported == [None, None])
    await eventually(lambda: listener.connected)
    servers[1].command("SET", "k:x", "1")
    await eventually(lambda: reported[2:] == ["k:x"])
    await listener.stop()


async def test_an_agreement_bounds_how_new_an_answer_is(primary: Primary, plain: RedisStore) -> None:
    """Of a plain URL there is none to wait for."""
    store = open_store("a store", primary, timeout=5)
    assert store.agreed_at == primary.agreed_at
    assert plain.agreed_at == float("inf")
    await store.stop()
