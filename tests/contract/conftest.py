"""The servers that one suite of behaviours runs over: a double without a server, a Valkey, and Debian's Redis."""

import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from fakeredis import FakeAsyncRedis, FakeServer
from redis import Redis as BlockingRedis
from redis.asyncio import Redis

from service.embedded.runtime import server_program
from service.redis.client import RedisStore
from service.redis.connections import open_client
from service.redis.opening import CacheStore, cache_place, open_cache
from tests.support.cluster import Cluster
from tests.support.cluster_double import ClusterDouble
from tests.support.redis_double import DoubledStore
from tests.support.valkey import ValkeyProcess

DEBIAN = "redis-server"


@dataclass(frozen=True)
class Backend:
    """One server, emptied for each test. `process` is None for the double."""

    process: ValkeyProcess | None
    double: FakeServer

    @property
    def url(self) -> str:
        return self.process.url if self.process else "redis://double"

    def client(self, timeout: float = 30) -> Redis:
        """With a generous budget: these tests are about behaviour, and test machines are busy."""
        return open_client(self.url, timeout=timeout) if self.process else FakeAsyncRedis(server=self.double)

    def store(self, timeout: float = 30) -> RedisStore:
        client = self.client(timeout)
        if isinstance(client, FakeAsyncRedis):
            return DoubledStore(client, "a store")
        return RedisStore("a store", self.url, client)

    def command(self, *words: str | bytes) -> object:
        """Sends a command from elsewhere."""
        assert self.process is not None
        with BlockingRedis.from_url(self.url) as client:
            return client.execute_command(*words)


def program(name: str) -> str:
    """Its path; the test is skipped where there is none."""
    if name == "valkey":
        return server_program()
    found = shutil.which(DEBIAN)
    if found is None:
        pytest.skip(f"{DEBIAN} is not on the PATH")
    return found


@pytest.fixture(scope="session", params=["valkey", DEBIAN])
def process(request: pytest.FixtureRequest, short_folder: Path) -> Iterator[ValkeyProcess]:
    folder = short_folder / f"contract-{request.param}"
    server = ValkeyProcess(folder, appendonly=True, program=program(request.param)).start()
    yield server
    server.kill()


@pytest.fixture
def real(process: ValkeyProcess) -> Backend:
    """A real server."""
    backend = Backend(process, FakeServer())
    backend.command("FLUSHALL")
    return backend


@pytest.fixture(scope="session", params=["double", "valkey", DEBIAN])
def _any_process(request: pytest.FixtureRequest, short_folder: Path) -> Iterator[ValkeyProcess | None]:
    if request.param == "double":
        yield None
        return
    folder = short_folder / f"any-{request.param}"
    server = ValkeyProcess(folder, appendonly=True, program=program(request.param)).start()
    yield server
    server.kill()


@pytest.fixture(scope="session")
def cluster(short_folder: Path) -> Iterator[Cluster]:
    """A cluster that no test may hurt."""
    made = Cluster(short_folder / "contract-cluster")
    try:
        yield made.start()
    finally:
        made.kill()


@pytest.fixture(scope="session")
def singles(short_folder: Path) -> Iterator[Callable[[str], Backend]]:
    """Starts a server of this name, or gives the one that was started."""
    started: dict[str, ValkeyProcess] = {}

    def start(name: str) -> Backend:
        if name not in started:
            started[name] = ValkeyProcess(short_folder / f"single-{name}", program=program(name)).start()
        return Backend(started[name], FakeServer())

    yield start
    for server in started.values():
        server.kill()


@asynccontextmanager
async def _opened(kind: str, request: pytest.FixtureRequest) -> AsyncIterator[CacheStore]:
    if kind == "double":
        yield DoubledStore(FakeAsyncRedis(server=FakeServer()), "a store")
        return
    async with AsyncExitStack() as ends:
        if kind == "cluster":
            cluster: Cluster = request.getfixturevalue("cluster")
            cluster.empty()
            url = cluster.url
        elif kind == "cluster of doubles":
            double = await ClusterDouble().start()
            ends.push_async_callback(double.stop)
            url = double.url
        else:
            server: Backend = request.getfixturevalue("singles")(kind)
            server.command("FLUSHALL")
            url = server.url
        store = open_cache("a store", cache_place(url), timeout=30)
        await store.start()
        ends.push_async_callback(store.stop)
        yield store


@pytest.fixture(params=["cluster of doubles", "cluster"])
async def clustered(request: pytest.FixtureRequest) -> AsyncIterator[CacheStore]:
    """A cluster, emptied."""
    async with _opened(request.param, request) as store:
        yield store


@pytest.fixture(params=["double", "valkey", DEBIAN, "cluster of doubles", "cluster"])
async def anywhere(request: pytest.FixtureRequest) -> AsyncIterator[CacheStore]:
    """One server, or a cluster, emptied."""
    async with _opened(request.param, request) as store:
        yield store


@pytest.fixture
def backend(_any_process: ValkeyProcess | None) -> Backend:
    """Any of the servers."""
    backend = Backend(_any_process, FakeServer())
    if _any_process:
        backend.command("FLUSHALL")
    return backend


@pytest.fixture
async def redis(backend: Backend) -> AsyncIterator[RedisStore]:
    store = backend.store(timeout=5)
    yield store
    await store.stop()
