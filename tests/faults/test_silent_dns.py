"""A resolver that never answers: no name of a Redis is resolved, and nothing reports why."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.conftest import Site
from tests.support.instance import Instance, forecast_here, serving
from tests.support.sentinels import free_port
from tests.support.valkey import ValkeyProcess
from tests.support.waiting import until

# The library's default is 5 s, twice for each server; a worker that is silent for 2 s is killed.
_STOP_SECONDS = 5.0
_REQUESTS = 7


class SilentResolver:
    """A UDP socket on port 53 of a loopback address, which never replies.

    `prefix` goes before a command that is to use it, and to read names from the file `hosts` before.
    """

    def __init__(self, folder: Path) -> None:
        self.hosts = folder / "hosts"
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        address = f"127.77.{os.getpid() % 250}.53"
        self._socket.bind((address, 53))
        self._socket.setblocking(False)
        resolv = folder / "resolv.conf"
        resolv.write_text(f"nameserver {address}\n")
        self.know()
        binds = f'mount --bind "{resolv}" /etc/resolv.conf && mount --bind "{self.hosts}" /etc/hosts && exec "$@"'
        self.prefix = ("unshare", "--mount", "sh", "-c", binds, "sh")

    def know(self, *names: str) -> None:
        """Lets only these names be resolved, to this machine."""
        self.hosts.write_text("".join(f"127.0.0.1 {name}\n" for name in ("localhost", *names)))

    def was_queried(self) -> bool:
        """Whether a query arrived since the last call."""
        queries = 0
        with contextlib.suppress(BlockingIOError):
            while self._socket.recv(1024):
                queries += 1
        return queries > 0

    def close(self) -> None:
        self._socket.close()


def _permitted() -> bool:
    mounts = ["unshare", "--mount", "mount", "--bind", "/etc/hosts", "/etc/hosts"]
    return (
        os.geteuid() == 0
        and shutil.which("unshare") is not None
        and subprocess.run(mounts, capture_output=True, check=False).returncode == 0
    )


pytestmark = pytest.mark.skipif(not _permitted(), reason="needs root, to bind port 53 and /etc/resolv.conf")


@pytest.fixture
def resolver(short: Path) -> Iterator[SilentResolver]:
    made = SilentResolver(short)
    yield made
    made.close()


def stops_well(instance: Instance) -> None:
    """It ends by itself, in time, without a killed process or a lost exception."""
    began = time.monotonic()
    assert instance.stop() == 0
    assert time.monotonic() - began < _STOP_SECONDS
    text = instance.log_file.read_text()
    for complaint in ("does not respond", "never retrieved", "a thread hangs", "are lost"):
        assert complaint not in text


def test_an_instance_starts_and_stops_without_any_name(published: Site, resolver: SilentResolver, short: Path) -> None:
    """The operators' listener and the workers are there before either store is found."""
    env = {
        **published.env,
        "FORECAST_KEYS_URL": "redis://keys.example:6379/0",
        "FORECAST_CACHE_URL": "redis://cache.example:6379/0",
    }
    with serving(env, short / "serve.log", prefix=resolver.prefix) as instance:
        until(lambda: "key store is unreachable" in instance.ready().text)
        assert resolver.was_queried()
        stops_well(instance)


def test_usage_outlives_names_that_vanish(published: Site, resolver: SilentResolver, short: Path) -> None:
    """The key store and its name vanish: answers continue, and the next start stores what was counted meanwhile."""
    ports = {"keys": free_port(), "cache": free_port()}
    published.kill()

    def start(role: str) -> ValkeyProcess:
        options = ("--port", str(ports[role]))
        return ValkeyProcess(short / role, appendonly=role == "keys", options=options).start()

    published.keys, published.cache = start("keys"), start("cache")
    env = published.env | {
        f"FORECAST_{role.upper()}_URL": f"redis://{role}.example:{port}/0" for role, port in ports.items()
    }
    resolver.know("keys.example", "cache.example")
    with serving(env, short / "serve.log", prefix=resolver.prefix) as instance:
        until(lambda: instance.zip_code(published.key).status_code == 200)
        resolver.know()
        published.kill()
        for _ in range(_REQUESTS):
            assert instance.zip_code(published.key).status_code == 200
        until(resolver.was_queried)
        stops_well(instance)
    published.keys, published.cache = start("keys"), start("cache")
    resolver.know("keys.example", "cache.example")
    with serving(env, short / "again.log", prefix=resolver.prefix):
        until(lambda: _answered(published.env) == _REQUESTS + 1)


def _answered(env: dict[str, str]) -> int:
    rows: list[dict[str, int]] = json.loads(forecast_here(env, "usage", "--json").stdout)
    return sum(row["answered"] for row in rows)
