"""Writes the lines of the request log to standard error, in a thread.

A stalled reader of standard error must not delay requests. Lines that it does not read are dropped and counted.
"""

import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from config.text import json_text, printable
from service.base.ipc import AccessLogEntry
from service.base.masking import masked

_NAME = "forecast.access"
_MOST_WAITING = 20_000  # lines not yet written to standard error
_WRITE_SECONDS = 0.05
# A pipe keeps one write together, up to this many bytes (POSIX, PIPE_BUF): all workers share it.
_AT_ONCE_BYTES = 4096
# Members of a line for a person, after time, level and message.
_SHOWN = ("request_id", "outcome", "milliseconds", "tier", "key_id", "partner", "test", "address", "count", "trace_id",
          "detail", "query")  # fmt: skip


def json_line(request: AccessLogEntry) -> bytes:
    """Returns a line in the format of the other log lines (base/logs.py)."""
    members = _members(request)
    time, pid = members.pop("time"), members.pop("pid")
    level = logging.getLevelName(_level(request)).lower()
    line = {"time": time, "level": level, "logger": _NAME, "message": _message(request), "pid": pid, **members}
    return masked(json_text(line)).encode() + b"\n"


def text_line(request: AccessLogEntry) -> bytes:
    """Returns a line for a person."""
    members = _members(request)
    extra = " ".join(f"{name}={members[name]}" for name in _SHOWN if name in members)
    level = logging.getLevelName(_level(request)).lower()
    return masked(printable(f"{request.time[11:19]} {level:7} {_message(request)}  {extra}", None)).encode() + b"\n"


class LineWriter:
    """Writes lines to `descriptor`, from `start` to `stop`. One per worker, which owns it; `dropped` counts lines."""

    def __init__(self, line_of: Callable[[AccessLogEntry], bytes], descriptor: int = 2) -> None:
        self.dropped = 0
        self._line_of = line_of
        self._descriptor = descriptor
        self._waiting: deque[AccessLogEntry] = deque()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="request log", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """Writes remaining lines, for at most so many seconds."""
        self._stopping.set()
        self._thread.join(seconds)

    def write(self, request: AccessLogEntry) -> None:
        if not logging.getLogger(_NAME).isEnabledFor(_level(request)):
            return
        if len(self._waiting) >= _MOST_WAITING:
            self.dropped += 1
        else:
            self._waiting.append(request)

    def _run(self) -> None:
        while not self._stopping.wait(_WRITE_SECONDS):
            self._write_waiting()
        self._write_waiting()

    def _write_waiting(self) -> None:
        together = b""
        while self._waiting:
            line = self._line_of(self._waiting.popleft())
            if together and len(together) + len(line) > _AT_ONCE_BYTES:
                self._put(together)
                together = b""
            together += line
        if together:
            self._put(together)

    def _put(self, lines: bytes) -> None:
        while lines:
            try:
                lines = lines[os.write(self._descriptor, lines) :]
            except OSError:  # standard error was closed
                self.dropped += lines.count(b"\n")
                return


def _level(request: AccessLogEntry) -> int:
    return logging.WARNING if request.status >= 500 else logging.INFO


def _message(request: AccessLogEntry) -> str:
    return f"{request.method} {request.path} {request.status}"


def _members(request: AccessLogEntry) -> dict[str, Any]:
    members = {name: value for name, value in msgspec.structs.asdict(request).items() if value is not None}
    if request.count == 1:
        del members["count"]
    return members
