"""A process of ours: started with a socket to talk over, waited for, and started again. Each end sees the other go."""

import asyncio
import socket
import subprocess
import sys

# Between the close of its socket and the end of a process.
_POLL_SECONDS = 0.02
_FIRST_BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS = 0.2, 5.0
# A process that lived this long did not die of its start.
_SETTLED_SECONDS = 10.0


def start_child(module: str, *files: int) -> tuple["subprocess.Popen[bytes]", socket.socket]:
    """Runs ``python -m module``; its arguments are the descriptors of its end of the socket and of `files`.

    Call from the main thread: the child dies with the thread that started it. Raises OSError.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        given = (theirs.fileno(), *files)
        process = subprocess.Popen(  # noqa: S603 - this interpreter, our module
            [sys.executable, "-m", module, *map(str, given)],
            pass_fds=given,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the supervisor, which drains
        )
    ours.setblocking(False)
    return process, ours


async def ended(process: "subprocess.Popen[bytes]") -> str:
    """Waits for the end of `process`; says how it ended.

    Not in a thread: a process that hangs in the kernel ends when its file system lets go, and nobody waits for that.
    """
    while (status := process.poll()) is None:  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(_POLL_SECONDS)
    return f"signal {-status}" if status < 0 else f"exit code {status}"


class Backoff:
    """How long to wait before a process is started again; whoever keeps one alive has one.

    `at_least` seconds after one that had settled, longer and longer while they die of their start.
    """

    def __init__(self, at_least: float = 0.0) -> None:
        self._at_least = at_least
        self._seconds = 0.0

    def after(self, lived: float) -> float:
        """Seconds to wait after a process that lived for `lived` seconds."""
        if lived > _SETTLED_SECONDS:
            self._seconds = self._at_least
        else:
            self._seconds = min(LONGEST_BACKOFF_SECONDS, max(_FIRST_BACKOFF_SECONDS, self._seconds * 2))
        return self._seconds
