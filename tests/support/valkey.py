"""A real Valkey (or Redis) process that a test can stop, stall and start again on the same socket."""

import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from service.embedded.runtime import server_program

_START_SECONDS = 60.0


class ServerProcess:
    """A server that runs or not."""

    _process: "subprocess.Popen[bytes] | None" = None

    def stall(self) -> None:
        self._running.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._running.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """As a power cut would: nothing is saved that was not saved before."""
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


class ValkeyProcess(ServerProcess):
    """`appendonly` keeps its data over restarts; `options` are further ones of the command line."""

    def __init__(
        self, folder: Path, *, appendonly: bool = False, program: str | None = None, options: Sequence[str] = ()
    ) -> None:
        self.socket = folder / "s"
        self.url = f"unix://{self.socket}"
        self._folder = folder
        self._appendonly = "yes" if appendonly else "no"
        self._program = program or server_program()
        self._options = options

    def start(self) -> "ValkeyProcess":
        self._folder.mkdir(parents=True, exist_ok=True)
        self.socket.unlink(missing_ok=True)
        options = ["--port", "0", "--unixsocket", str(self.socket), "--dir", str(self._folder), "--save", ""]
        options += ["--appendonly", self._appendonly, "--appendfsync", "always"]
        self._process = subprocess.Popen([self._program, *options, *self._options], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + _START_SECONDS
        while not self.answers():
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.01)
        return self

    def answers(self) -> bool:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(1)
                connection.connect(str(self.socket))
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False
