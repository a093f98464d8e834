"""Ctrl-C: one line and exit code 130, at any time.

Python raises KeyboardInterrupt at any point. DuckDB turns it into an error of its own, and in a finalizer it is lost.
So it is noted here, and the end of the command checks here whether an error is an interruption.
"""

import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")

EXIT_CODE = 130
_AGAIN_SECONDS = 0.5

_signal: str | None = None
_held = False
_result = ""
_enders: list[Callable[[], None]] = []


def received_signal() -> str | None:
    """Returns the name of the signal that asked this process to stop, if one did."""
    return _signal


def note_signal(number: int) -> None:
    global _signal
    _signal = signal.Signals(number).name
    for end_work in _enders:
        end_work()


def call_on_signal(end_work: Callable[[], None]) -> None:
    """Calls `end_work` in the handler of each signal that asks this process to stop."""
    _enders.append(end_work)


def clear() -> None:
    global _signal
    _signal = None


def explain_result(result: str) -> None:
    """Sets what the final line says about an interrupted command's changes."""
    global _result
    _result = f"; {result}"


def arm() -> None:
    """Notes Ctrl-C from now on, and raises it until it arrives. A process started to ignore it keeps ignoring it."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return

    def interrupt(number: int, _: FrameType | None) -> None:
        begun = _signal is not None
        if number == signal.SIGALRM and not begun:
            return  # another alarm
        note_signal(signal.SIGINT)
        if _held:
            return
        if begun and sys.exc_info()[0] is not None:
            return  # it was raised already, and cleaning up must not be interrupted
        # a library may swallow an exception raised within it
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS, _AGAIN_SECONDS)
        raise KeyboardInterrupt

    def unraisable(lost: "sys.UnraisableHookArgs") -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(lost)

    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGALRM, interrupt)
    sys.unraisablehook = unraisable


@contextmanager
def delayed() -> Iterator[None]:
    """Delays Ctrl-C until the end of this block, which is short.

    For imports: a native module that is interrupted while it is imported ends the process.
    """
    global _held
    _held = True
    try:
        yield
    finally:
        _held = False
    if _signal is not None:
        raise KeyboardInterrupt


def disarm() -> None:
    """Ignores signals after the command has ended: the interpreter's exit is not worth interrupting."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0)


def end_interrupted() -> NoReturn:
    """Prints that the command was interrupted, and ends the process, which has cleaned up by now.

    Without an exception: an interpreter interrupted within `exec` of a text would end itself by the signal.
    """
    disarm()
    with suppress(OSError, ValueError):
        if sys.stderr.isatty():
            sys.stderr.write("\n")  # after the terminal's ^C
        sys.stderr.write(f"forecast: interrupted{_result}\n")
        sys.stderr.flush()
        sys.stdout.flush()
    os._exit(EXIT_CODE)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs `work` as `asyncio.run` does. Python's handler cancels `work` on Ctrl-C, so that its coroutines clean up."""
    import asyncio  # not before `arm`: it takes a moment

    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        return asyncio.run(work)
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return asyncio.run(work)
    except KeyboardInterrupt:
        note_signal(signal.SIGINT)
        raise
    finally:
        signal.signal(signal.SIGINT, before)
