"""Start-up of our processes: each dies with its parent, however that ends, and collects garbage less often."""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# From linux/prctl.h.
_PR_SET_PDEATHSIG, _PR_SET_NAME, _PR_SET_CHILD_SUBREAPER = 1, 15, 36
# Imports make objects that stay, and requests leave little garbage: with the default of 700 objects, the collector
# would mostly scan live objects, for a sixth of the start-up time.
_COLLECT_AFTER_OBJECTS = 10_000


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Asks the kernel to send `number` to this process when the thread that started it ends (prctl(2)).

    This works even if the process is stopped, or too busy to notice a closed socket. Start processes from the main
    thread: another thread may end long before its process.
    """
    _prctl(_PR_SET_PDEATHSIG, number)


def belong_to(parent: int) -> None:
    """Makes this process die with `parent`, a process id; at once if that process has already ended."""
    die_with_parent()
    if os.getppid() != parent:
        os._exit(1)


def interpreter(module: str, *arguments: object) -> list[str]:
    """Returns the command that runs `main` of one of our modules in a new process. Modules in its current folder or on
    PYTHONPATH have no effect."""
    # -P: leaves out the folder of that file, which may have all installed packages
    start = Path(__file__).parents[1] / "forecast_command.py"
    return [sys.executable, "-P", str(start), module, *map(str, arguments)]


def name_process(what: str) -> None:
    """Makes `ps`, `top` and `pgrep` show this process as "forecast-WHAT". The kernel keeps 15 characters."""
    _prctl(_PR_SET_NAME, f"forecast-{what}".encode())


@contextmanager
def adopt_orphans() -> Iterator[None]:
    """Makes orphaned descendants of this process its children until the block ends."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        _prctl(_PR_SET_CHILD_SUBREAPER, 0)


def offer_to_kill(score: int) -> None:
    """Makes the kernel kill this process before those that started it when memory runs out: by `score` thousandths of
    the memory, as if it used so much more (proc(5), oom_score_adj)."""
    file = Path("/proc/self/oom_score_adj")
    with suppress(OSError):
        file.write_text(str(min(1000, int(file.read_text()) + score)))


def _prctl(option: int, argument: int | bytes) -> None:
    if sys.platform.startswith("linux"):
        import ctypes  # since Python 3.14, this may open a file, which must not become a standard stream

        ctypes.CDLL(None).prctl(option, argument)


def collect_seldom(after: int = _COLLECT_AFTER_OBJECTS) -> None:
    """Makes the garbage collector run only after `after` new objects. Call it before large imports."""
    gc.set_threshold(after)
