"""Child processes: started with a socket to talk over, waited for, started again. Each end sees the other go."""

import asyncio
import os
import socket
import subprocess
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


def failure_in(line: bytes) -> str:
    """The reason in a line of `report_failure`, to append to how the process ended."""
    return f", {line.removeprefix(FAILED).decode(errors='replace').strip()}"


async def ended(process: Child) -> str:
    """Waits for the end of `process`; returns how it ended.

    Not in a thread, which could not be abandoned while a process hangs in the kernel.
    """
    while (status := process.poll()) is None:  # noqa: ASYNC110 - no event announces it
        await asyncio.sleep(_POLL_SECONDS)
    return f"signal {-status}" if status < 0 else f"exit code {status}"
