"""Child processes: started with a socket to talk over, waited for, started again. Each end sees the other go."""

import asyncio
import os
import socket
import subprocess
import sys
from typing import Protocol

from config.processes import FAILED

# While a process whose socket has closed comes to its end.
_POLL_SECONDS = 0.02
_FIRST_BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS = 0.2, 5.0
# A process that lived this long did not die of its start.
_SETTLED_SECONDS = 10.0


class Child(Protocol):
    """What an instance asks of a process that it started; `subprocess.Popen` has it."""

    pid: int

    def poll(self) -> int | None:
        """The exit code, or the negative number of the signal that ended it; None while it runs."""

    def send_signal(self, number: int, /) -> None: ...


def start_child(module: str, *files: int) -> tuple[Child, socket.socket]:
    """Runs ``python -m module``. Its arguments: our process id, and descriptors: its end of the socket, then `files`.

    Call from the main thread: the child dies with the thread that started it. Raises OSError.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        given = (theirs.fileno(), *files)
        process = subprocess.Popen(  # noqa: S603 - this interpreter, our module
            [sys.executable, "-m", module, str(os.getpid()), *map(str, given)],
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


class Backoff:
    """The pause before a process is started again; whoever keeps a process alive owns one.

    It is `at_least` seconds after a process that had settled, and longer and longer while processes die of their start.
    """

    def __init__(self, at_least: float = 0.0) -> None:
        self._at_least = at_least
        self._seconds = 0.0

    def after(self, lived: float) -> float:
        """The pause, in seconds, after a process that lived for `lived` seconds."""
        if lived > _SETTLED_SECONDS:
            self._seconds = self._at_least
        else:
            self._seconds = min(LONGEST_BACKOFF_SECONDS, max(_FIRST_BACKOFF_SECONDS, self._seconds * 2))
        return self._seconds
