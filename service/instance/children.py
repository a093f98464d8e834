"""Starts child processes and talks to each over a socket. Either end notices when the other exits."""

import asyncio
import contextlib
import importlib
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import NoReturn, Protocol

from config.processes import interpreter
from config.resources import memory_kills, out_of_memory

log = logging.getLogger("forecast.supervisor")

# A process that fails sends this word and the reason in one line.
_FAILED = b"failed "
_REASON_CHARACTERS = 300
_KILLED = f"signal {signal.SIGKILL:d}"
_NEEDED = "an instance needs 60 MB, and 200 MB for each worker"
# Poll interval for the exit of a process whose socket has closed.
_POLL_SECONDS = 0.02


class Child(Protocol):
    """The part of `subprocess.Popen` that an instance uses."""

    pid: int

    def poll(self) -> int | None:
        """Returns the exit code, or the negative number of the signal that ended it; None while it runs."""

    def send_signal(self, number: int, /) -> None: ...


def start_child(module: str, *files: int) -> tuple[Child, socket.socket]:
    """Runs `main` of the module in a new process. Arguments: our process id; descriptors of its socket and `files`.

    Call from the main thread: the child dies with the thread that started it. Raises OSError.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        descriptors = (theirs.fileno(), *files)
        process = subprocess.Popen(  # noqa: S603 - this interpreter, our module
            interpreter(__name__, module, os.getpid(), *descriptors),
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the supervisor, which drains
        )
    ours.setblocking(False)
    return process, ours


def main() -> None:
    """Runs the module that the first argument names, in a process that `start_child` started."""
    del sys.argv[0]
    run_child()


def run_child() -> NoReturn:
    """Runs `main` of the module ``sys.argv[0]``, which ends the process. If it fails, the supervisor gets the error
    through the socket ``sys.argv[2]``.
    """
    module, _, control = sys.argv[:3]
    failures = os.dup(int(control))  # `main` closes its own
    try:
        importlib.import_module(module).main()
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 1)
    except BaseException as error:
        log.exception("%s failed", module)
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:_REASON_CHARACTERS].removesuffix(":")
        with contextlib.suppress(OSError):
            os.write(failures, _FAILED + reason.encode(errors="replace") + b"\n")
    finally:
        logging.shutdown()
        os._exit(1)


async def wait_for_exit(process: Child) -> str:
    """Waits for the end of `process`; returns its exit code or signal as text.

    Polls, because a waiting thread could not be abandoned while a process hangs in the kernel.
    """
    while (status := process.poll()) is None:  # noqa: ASYNC110 - no event announces it
        await asyncio.sleep(_POLL_SECONDS)
    return f"signal {-status}" if status < 0 else f"exit code {status}"


class ControlledChild:
    """A child process and our end of its control socket, from its start to its end.

    `orders` are sent first; they are not arguments of the process because they hold secrets. Each line that it sends
    is passed to `take`. If that raises ValueError, the process is killed.
    """

    def __init__(
        self, process: Child, control_socket: socket.socket, orders: bytes, take: Callable[[bytes], None], limit: int
    ) -> None:
        """`limit` is the maximum length of a line in bytes."""
        self.pid = process.pid
        self._process = process
        self._take = take
        self._failure = ""  # the error that it reported
        self._kills = memory_kills()
        self.starved = False  # it was killed because memory ran out
        self._writer: asyncio.StreamWriter | None = None
        self._listening = asyncio.create_task(self._listen(control_socket, orders, limit), name=f"listen to {self.pid}")

    @property
    def is_connected(self) -> bool:
        """Whether its end of the socket is open."""
        return not self._listening.done()

    def send(self, line: bytes) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(line)

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def wait_for_exit(self) -> str:
        """Waits for the end of the process; returns its exit code or signal, and the error that it reported."""
        await self._listening
        status = await wait_for_exit(self._process) + self._failure
        self.starved = status == _KILLED and memory_kills() > self._kills
        return out_of_memory(_NEEDED) if self.starved else status

    async def _listen(self, control_socket: socket.socket, orders: bytes, limit: int) -> None:
        reader, self._writer = await asyncio.open_connection(sock=control_socket, limit=limit)
        self._writer.write(orders)
        try:
            while line := await reader.readline():
                if line.startswith(_FAILED):
                    self._failure = f", {line.removeprefix(_FAILED).decode(errors='replace').strip()}"
                else:
                    self._take(line)
        except (ConnectionError, ValueError):
            self.signal(signal.SIGKILL)  # it has exited, or sent an invalid line
        finally:
            self._writer.close()
