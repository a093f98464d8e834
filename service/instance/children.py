"""Child processes: started with a socket to talk over, heard, waited for. Each end sees the other go."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Callable
from typing import Protocol

from config.processes import FAILED, interpreter

# While a process whose socket has closed comes to its end.
_POLL_SECONDS = 0.02


class Child(Protocol):
    """What an instance asks of a process that it started; `subprocess.Popen` has it."""

    pid: int

    def poll(self) -> int | None:
        """The exit code, or the negative number of the signal that ended it; None while it runs."""

    def send_signal(self, number: int, /) -> None: ...


def start_child(module: str, *files: int) -> tuple[Child, socket.socket]:
    """Runs `main` of the module. Its arguments: our process id, and descriptors: its end of the socket, then `files`.

    Call from the main thread: the child dies with the thread that started it. Raises OSError.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        given = (theirs.fileno(), *files)
        process = subprocess.Popen(  # noqa: S603 - this interpreter, our module
            interpreter(module, os.getpid(), *given),
            pass_fds=given,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the supervisor, which drains
        )
    ours.setblocking(False)
    return process, ours


async def ended(process: Child) -> str:
    """Waits for the end of `process`; returns how it ended.

    Not in a thread, which could not be abandoned while a process hangs in the kernel.
    """
    while (status := process.poll()) is None:  # noqa: ASYNC110 - no event announces it
        await asyncio.sleep(_POLL_SECONDS)
    return f"signal {-status}" if status < 0 else f"exit code {status}"


class ControlledChild:
    """A child process and our end of its control socket, from its start to its end.

    It first gets its `orders`, which are no arguments because they hold secrets. Each line that it sends is passed to
    `take`; if that raises ValueError, the line is nonsense, and the process is killed.
    """

    def __init__(
        self, process: Child, control_socket: socket.socket, orders: bytes, take: Callable[[bytes], None], limit: int
    ) -> None:
        """`limit`: bytes of the longest line."""
        self.pid = process.pid
        self._process = process
        self._take = take
        self._failure = ""  # why it cannot work
        self._writer: asyncio.StreamWriter | None = None
        self._listening = asyncio.create_task(self._listen(control_socket, orders, limit), name=f"hear {self.pid}")

    @property
    def is_heard(self) -> bool:
        """Whether its end of the socket is open."""
        return not self._listening.done()

    def send(self, line: bytes) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(line)

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def ended(self) -> str:
        """Waits for the end of the process; returns how it ended, and why if it said so."""
        await self._listening
        return await ended(self._process) + self._failure

    async def _listen(self, control_socket: socket.socket, orders: bytes, limit: int) -> None:
        reader, self._writer = await asyncio.open_connection(sock=control_socket, limit=limit)
        self._writer.write(orders)
        try:
            while line := await reader.readline():
                if line.startswith(FAILED):
                    self._failure = f", {line.removeprefix(FAILED).decode(errors='replace').strip()}"
                else:
                    self._take(line)
        except (ConnectionError, ValueError):
            self.signal(signal.SIGKILL)  # it is gone, or talks nonsense
        finally:
            self._writer.close()
