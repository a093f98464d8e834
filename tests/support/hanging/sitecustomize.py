"""Makes a Python process's access to files hang, as a file system does whose server is unreachable.

With this folder on PYTHONPATH, and HANGING naming an order file: while that exists, whatever opens, lists or replaces a
path that begins with one of its lines waits in its thread. The order `for ever` on a line of its own makes what waits
then wait also when the order is gone. DuckDB reads by itself; for it, a FIFO is in a file's place (hang_file).

Signals make the main thread hang, and with it the event loop: SIGRTMIN in a wait, SIGRTMAX in a loop.
"""

import os
import signal
import sys
import time
from typing import Any

_ORDER = os.environ.get("HANGING", "")
_EVENTS = frozenset({"open", "os.listdir", "os.scandir", "os.rename", "os.remove", "os.mkdir"})


def _order() -> list[str]:
    try:
        with open(_ORDER, encoding="utf-8") as stream:  # noqa: PTH123 - nothing but what is loaded anyway
            return stream.read().splitlines()
    except OSError:
        return []


def _hang(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in _EVENTS or isinstance(arguments[0], int) or arguments[0] is None:
        return
    path = os.fsdecode(arguments[0])
    if path == _ORDER:
        return
    lines = _order()
    while any(path.startswith(line) for line in lines if line):
        if "for ever" in lines:
            time.sleep(3600)
        time.sleep(0.02)
        lines = _order()


def _loop(*_: object) -> None:
    while True:
        pass


if _ORDER:
    sys.addaudithook(_hang)
    signal.signal(signal.SIGRTMIN, lambda *_: time.sleep(3600))
    signal.signal(signal.SIGRTMAX, _loop)
