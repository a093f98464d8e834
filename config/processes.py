"""How a process of ours begins: it ends with the one that started it, however that ends, and collects seldom."""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# From linux/prctl.h.
_PR_SET_PDEATHSIG, _PR_SET_NAME, _PR_SET_CHILD_SUBREAPER = 1, 15, 36
# A process that cannot do its work sends this to its supervisor, and the reason, in one line.
FAILED = b"failed "
_REASON_CHARACTERS = 300
# Imports make objects that stay, and requests leave little garbage: with the usual 700 objects, the collector would
# mostly look at what is in use, for a sixth of the time that a start takes.
_COLLECT_AFTER_OBJECTS = 10_000


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Asks the kernel to send `number` to this process when the thread that started it ends (prctl(2)).

    This works even if the process is stopped, or too busy to see a socket close. Start processes from the main thread:
    another thread may end long before its process.
    """
    _prctl(_PR_SET_PDEATHSIG, number)


def belong_to(parent: int) -> None:
    """Lets this process die with `parent`, a process id; at once if that has already ended."""
    die_with_parent()
    if os.getppid() != parent:
        os._exit(1)


def report_failure(control: int, error: BaseException) -> None:
    """Sends the reason to the supervisor, at the other end of the socket that `control`, an open file, is."""
    text = " ".join(f"{type(error).__name__}: {error}".split())[:_REASON_CHARACTERS]
    with suppress(OSError):
        os.write(control, FAILED + text.encode(errors="replace") + b"\n")


def interpreter(module: str, *arguments: object) -> list[str]:
    """The command that runs `main` of one of our modules in a new process, whatever is in its current folder or on
    PYTHONPATH."""
    # -P: without the folder of that file, which may be where everything is installed
    start = Path(__file__).parents[1] / "forecast_command.py"
    return [sys.executable, "-P", str(start), module, *map(str, arguments)]


def name_process(what: str) -> None:
    """Lets `ps`, `top` and `pgrep` show this process as "forecast-WHAT", of which the kernel keeps 15 characters."""
    _prctl(_PR_SET_NAME, f"forecast-{what}".encode())


@contextmanager
def adopt_orphans() -> Iterator[None]:
    """Until the block ends, descendants of this process whose parent ends become its children."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        _prctl(_PR_SET_CHILD_SUBREAPER, 0)


def _prctl(option: int, argument: int | bytes) -> None:
    if sys.platform.startswith("linux"):
        import ctypes  # from Python 3.14 on, it may open a file, which must not become a standard stream

        ctypes.CDLL(None).prctl(option, argument)


def collect_seldom(after: int = _COLLECT_AFTER_OBJECTS) -> None:
    """Lets the garbage collector run less often: after so many more objects. Call before anything large is imported."""
    gc.set_threshold(after)
