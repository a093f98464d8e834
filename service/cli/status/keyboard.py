"""Single keys of a terminal, read without Enter."""

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Waits for at most so many seconds, none if there is no terminal; returns the key, or None.
Pressed = Callable[[float], str | None]


@contextmanager
def keyboard() -> Iterator[Pressed]:
    """Keys typed at the terminal are returned one by one and not shown, until the block ends."""
    if not sys.stdin.isatty():
        yield _sleep
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    try:
        yield lambda seconds: _read(descriptor, seconds)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _read(descriptor: int, seconds: float) -> str | None:
    ready, _, _ = select.select([descriptor], [], [], max(0.0, seconds))
    # the terminal may be gone: nobody watches any more
    return (os.read(descriptor, 1).decode(errors="replace") or "q") if ready else None


def _sleep(seconds: float) -> None:
    time.sleep(max(0.0, seconds))
