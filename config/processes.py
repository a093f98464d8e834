"""A process of ours ends with the one that started it, however that ends."""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Asks the kernel to send `number` to this process when the thread that started it ends (prctl(2)).

    It works also when this process is too busy, or stopped, to see a socket close. Start processes from the main
    thread: another one may end long before its process.
    """
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


def belong_to(parent: int) -> None:
    """Dies with `parent`, a process id; at once if that has ended already."""
    die_with_parent()
    if os.getppid() != parent:
        os._exit(1)
