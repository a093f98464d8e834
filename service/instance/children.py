"""Starting a process of ours with a socket to talk over, and waiting for its end. Both ends see the other's go."""

import asyncio
import socket
import subprocess
import sys

# Between the close of its socket and the end of a process.
_POLL_SECONDS = 0.02


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
