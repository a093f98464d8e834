"""Ctrl-C: one line and exit code 130, at whatever moment it comes.

Python raises KeyboardInterrupt wherever it happens to be. DuckDB turns it into an error of its own, and in a finalizer
it is lost. So it is noted here, and the end of the command looks here whether an error is one at all.
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

_asked: str | None = None
_held = False
_result = ""
_enders: list[Callable[[], None]] = []


def asked() -> str | None:
    """The name of the signal that asked this process to stop, if one did."""
    return _asked


def note(number: int) -> None:
    global _asked
    _asked = signal.Signals(number).name
    for end_work in _enders:
        end_work()


def ends_by(end_work: Callable[[], None]) -> None:
    """`end_work` is called in the handler of each signal that asks this process to stop."""
    _enders.append(end_work)


def forget() -> None:
    global _asked
    _asked = None


def explain_result(result: str) -> None:
    """What the interrupted command has changed, for the one line."""
    global _result
    _result = f"; {result}"


def arm() -> None:
    """From now on Ctrl-C is noted, and raised until it arrives. Who was started to ignore it goes on ignoring it."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return

    def interrupt(number: int, _: FrameType | None) -> None:
        begun = _asked is not None
        if number == signal.SIGALRM and not begun:
            return  # another alarm
        note(signal.SIGINT)
        if _held:
            return
        if begun and sys.exc_info()[0] is not None:
            return  # it is on its way already, and tidying up must not be interrupted
        # a library may lose what is raised within it
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS, _AGAIN_SECONDS)
        raise KeyboardInterrupt

    def unraisable(lost: "sys.UnraisableHookArgs") -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(lost)

    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGALRM, interrupt)
    sys.unraisablehook = unraisable


@contextmanager
def held() -> Iterator[None]:
    """Ctrl-C waits for the end of this block, which is short.

    For imports: a native module that is interrupted while it is imported ends the process.
    """
    global _held
    _held = True
    try:
        yield
    finally:
        _held = False
    if _asked is not None:
        raise KeyboardInterrupt


def disarm() -> None:
    """The command has ended: what its interpreter still does is not worth interrupting."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0)


def end_interrupted() -> NoReturn:
    """Says that the command was interrupted, and ends the process, which has tidied up by now.

    Not by an exception: an interpreter that was interrupted within `exec` of a text would end itself by the signal.
    """
    disarm()
    with suppress(OSError, ValueError):
        if sys.stderr.isatty():
            sys.stderr.write("\n")  # behind the terminal's ^C
        sys.stderr.write(f"forecast: interrupted{_result}\n")
        sys.stderr.flush()
        sys.stdout.flush()
    os._exit(EXIT_CODE)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`. With Python's own handler that cancels `work` on Ctrl-C, so that its coroutines tidy up."""
    import asyncio  # not before `arm`: it takes a moment

    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        return asyncio.run(work)
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return asyncio.run(work)
    except KeyboardInterrupt:
        note(signal.SIGINT)
        raise
    finally:
        signal.signal(signal.SIGINT, before)
