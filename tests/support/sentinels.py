"""Real Valkeys with replicas and Sentinels, on ports of their own, that a test can stop, stall and start again."""

import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from redis import Redis
from redis.exceptions import RedisError

from config.server_lists import Node
from service.embedded.runtime import server_program

_LONG_SECONDS = 60.0
_HOST = "127.0.0.1"


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind((_HOST, 0))
        port: int = bound.getsockname()[1]
        return port


def wait_until(what: Callable[[], object], describe: str) -> None:
    """Waits for a state, with a generous end."""
    deadline = time.monotonic() + _LONG_SECONDS
    while not what():
        assert time.monotonic() < deadline, f"it never came to: {describe}"
        time.sleep(0.02)


class PortServer:
    """One server process on a TCP port; `options` are its configuration. Its data outlives a kill."""

    def __init__(self, folder: Path, *options: str, sentinel: Sequence[str] = ()) -> None:
        self.port = free_port()
        self.node = Node(_HOST, self.port)
        self.url = f"redis://{self.node}/0"
        self._folder = folder
        self._options = options
        self._sentinel = sentinel
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True)
        if sentinel:  # it rewrites its configuration
            lines = [f"port {self.port}", f"bind {_HOST}", f"dir {folder}", *sentinel]
            (folder / "sentinel.conf").write_text("\n".join(lines) + "\n")

    def start(self) -> "PortServer":
        if self._sentinel:
            arguments = [str(self._folder / "sentinel.conf"), "--sentinel"]
        else:
            arguments = ["--port", str(self.port), "--bind", _HOST, "--dir", str(self._folder), "--save", ""]
        command = [server_program(), *arguments, *self._options]
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_until(self.answers, f"a server on port {self.port}")
        return self

    def command(self, *words: str | bytes | int) -> Any:
        with Redis.from_url(self.url, socket_timeout=5) as client:
            return client.execute_command(*words)

    def answers(self) -> bool:
        try:
            with Redis.from_url(self.url, socket_timeout=1) as client:
                return bool(client.ping())
        except RedisError:
            return False

    def stall(self) -> None:
        self._running.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._running.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def pid(self) -> int:
        return self._running.pid

    @property
    def runs(self) -> bool:
        return self._process is not None

    @property
    def _running(self) -> "subprocess.Popen[bytes]":
        assert self._process is not None
        return self._process
