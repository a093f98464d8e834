"""Signal handlers of long-running processes."""

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

log = logging.getLogger("forecast.signals")

# Log rotation sends them to have a log file reopened. We write to standard error, so there is none.
_UNUSED = (signal.SIGUSR1, signal.SIGUSR2)
# Only the supervisor handles these, not the processes that it started.
FOR_SUPERVISOR = (signal.SIGQUIT, *_UNUSED)


def stop_signals() -> tuple[signal.Signals, ...]:
    """Returns the signals that stop a command or an instance gracefully. SIGHUP and SIGQUIT are left out where they are
    ignored, as under nohup, in the background of a script, and in processes that a supervisor started.
    """
    heeded = (n for n in (signal.SIGHUP, signal.SIGQUIT) if signal.getsignal(n) is not signal.SIG_IGN)
    return (signal.SIGTERM, signal.SIGINT, *heeded)


@contextmanager
def on_stop(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Calls `handler` for each of the `stop_signals`, until the block ends."""
    before = {number: signal.signal(number, handler) for number in stop_signals()}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def log_unused() -> None:
    """Logs SIGUSR1 and SIGUSR2 from now on, instead of ending the process."""
    for number in _UNUSED:
        signal.signal(number, _log)


def leave_to_supervisor() -> None:
    """Ignores, in a process that a supervisor started, the signals that only the supervisor handles."""
    for number in FOR_SUPERVISOR:
        signal.signal(number, signal.SIG_IGN)


def _log(number: int, _: FrameType | None) -> None:
    name = signal.Signals(number).name
    log.info("%s is ignored: the log goes to standard error, so there is no file to reopen", name)
