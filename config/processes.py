"""Makes a process of ours end with the one that started it, however that ends."""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # from linux/prctl.h


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Asks the kernel to send `number` to this process when the thread that started it ends (prctl(2)).

    This works even if the process is stopped, or too busy to see a socket close. Start processes from the main thread:
    another thread may end long before its process.
    """
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


def belong_to(parent: int) -> None:
    """Lets this process die with `parent`, a process id; at once if that has already ended."""
    die_with_parent()
    if os.getppid() != parent:
        os._exit(1)
