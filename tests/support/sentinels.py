"""Real Valkeys with replicas and Sentinels, on ports of their own, that a test can stop, stall and start again."""

import os
import random
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from redis import Redis
from redis.exceptions import RedisError

from config.server_lists import Node
from service.embedded.runtime import server_program
from tests.support.network import HERE, Machine
from tests.support.valkey import ServerProcess

_LONG_SECONDS = 60.0
_HOST = "127.0.0.1"
_FIRST_PORT, _PORTS_EACH = 10_000, 2_500
_given: set[int] = set()


def free_port() -> int:
    """Not one of those that the system gives to connections: it may be used again after a server was killed. Each test
    process has its own, and gives each once: a port is free until its server starts."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 8
    first = _FIRST_PORT + worker * _PORTS_EACH
    while True:
        port = random.randrange(first, first + _PORTS_EACH)
        with socket.socket() as bound, suppress(OSError):
            bound.bind((_HOST, port))
            if port not in _given:
                _given.add(port)
                return port


def wait_until(what: Callable[[], object], describe: str) -> None:
    """Waits for a state, with a generous end. Connections may be lost meanwhile: who is demoted closes them."""
    deadline = time.monotonic() + _LONG_SECONDS
    while True:
        with suppress(RedisError):
            if what():
                return
        assert time.monotonic() < deadline, f"it never came to: {describe}"
        time.sleep(0.02)


class PortServer(ServerProcess):
    """One server process on a TCP port of `machine`; `options` are its configuration. Its data outlives a kill."""

    def __init__(self, folder: Path, *options: str, sentinel: Sequence[str] = (), machine: Machine = HERE) -> None:
        self.port = free_port()
        self.node = Node(machine.address, self.port)
        self.machine = machine
        self.credentials = ""  # as in a URL, with the `@`
        self._folder = folder
        self._options = options
        self._sentinel = sentinel
        folder.mkdir(parents=True)
        if sentinel:  # it rewrites its configuration
            lines = [f"port {self.port}", f"bind {machine.address}", "protected-mode no", f"dir {folder}", *sentinel]
            (folder / "sentinel.conf").write_text("\n".join(lines) + "\n")

    def start(self) -> "PortServer":
        if self._sentinel:
            arguments = [str(self._folder / "sentinel.conf"), "--sentinel"]
        else:
            place = ["--port", str(self.port), "--bind", self.machine.address, "--protected-mode", "no"]
            arguments = [*place, "--dir", str(self._folder), "--save", ""]
        command = [*self.machine.prefix, server_program(), *arguments, *self._options]
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_until(lambda: self.answers() or self._running.poll() is not None, f"a server on port {self.port}")
        assert self._running.poll() is None, (self._folder / "server.log").read_text()
        return self

    @property
    def url(self) -> str:
        return f"redis://{self.credentials}{self.node}/0"

    def command(self, *words: str | bytes | int) -> Any:
        with self.machine.inside(), Redis.from_url(self.url, socket_timeout=5) as client:
            return client.execute_command(*words)

    def answers(self) -> bool:
        try:
            with self.machine.inside(), Redis.from_url(self.url, socket_timeout=1) as client:
                return bool(client.ping())
        except RedisError:
            return False


class Trio:
    """A primary with its replicas, and three Sentinels that fail over after half a second, started for good or ill."""

    SERVICE = "keys"

    def __init__(self, folder: Path, servers: int = 2, machines: Sequence[Machine] = (HERE, HERE, HERE)) -> None:
        always = ("--appendonly", "yes", "--appendfsync", "always", "--repl-diskless-sync-delay", "0")
        self.servers = [
            PortServer(folder / f"server-{at}", *always, machine=machine)
            for at, machine in enumerate(machines[:servers])
        ]
        first = self.servers[0].node
        about = [
            f"sentinel monitor {self.SERVICE} {first.host} {first.port} 2",
            f"sentinel down-after-milliseconds {self.SERVICE} 500",
            f"sentinel failover-timeout {self.SERVICE} 3000",
        ]
        self.sentinels = [
            PortServer(folder / f"sentinel-{at}", sentinel=about, machine=machine)
            for at, machine in enumerate(machines)
        ]

    @property
    def url(self) -> str:
        nodes = ",".join(str(sentinel.node) for sentinel in self.sentinels)
        return f"redis+sentinel://{nodes}/{self.SERVICE}/0"

    def start(self) -> "Trio":
        primary = self.servers[0].start()
        for server in self.servers[1:]:
            server.start()
            server.command("REPLICAOF", *map(str, primary.node))
        for sentinel in self.sentinels:
            sentinel.start()
        self.wait_whole()
        return self

    def wait_whole(self) -> None:
        """Until every replica follows the primary, and every Sentinel knows all others: then a failover works."""
        wait_until(self._is_whole, "replicas and Sentinels that know each other")

    def primary(self) -> PortServer:
        """The one that the first Sentinel names."""
        return next(server for server in self.servers if server.port == self.names(self.sentinels[0]))

    def replicas(self) -> list[PortServer]:
        primary = self.primary()
        return [server for server in self.servers if server is not primary]

    def fail_over(self) -> PortServer:
        """Kills the primary, without a word; returns the one that was promoted."""
        old = self.primary()
        old.kill()
        self.wait_for_another(old)
        return self.primary()

    def wait_for_another(self, old: PortServer) -> None:
        """Until all Sentinels name another primary, which is one."""
        wait_until(lambda: all(self.names(sentinel) != old.port for sentinel in self.sentinels), "another primary")
        wait_until(lambda: self.primary().command("ROLE")[0] == b"master", "a primary that is one")

    def kill(self) -> None:
        for server in (*self.servers, *self.sentinels):
            server.kill()

    def names(self, sentinel: PortServer) -> int:
        return int(sentinel.command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.SERVICE)[1])

    def _is_whole(self) -> bool:
        primary = self.primary()
        links = [server.command("INFO", "replication") for server in self.servers if server is not primary]
        synced = all(link["role"] == "slave" and link["master_link_status"] == "up" for link in links)
        known = [sentinel.command("SENTINEL", "MASTER", self.SERVICE) for sentinel in self.sentinels]
        return synced and all(
            (int(said[b"num-other-sentinels"]), int(said[b"num-slaves"])) == (2, len(self.servers) - 1)
            for said in (as_dict(reply) for reply in known)
        )


def as_dict(reply: Any) -> dict[bytes, bytes]:
    if isinstance(reply, dict):
        return {_bytes(name): _bytes(value) for name, value in reply.items()}
    return dict(zip(reply[::2], reply[1::2], strict=True))


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()
