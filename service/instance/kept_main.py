"""The child's end of a `KeptProcess`: receives its orders, reports its problem, ends with its supervisor."""

import os
import socket
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

import msgspec

from config.decoders import decoder_of
from config.processes import belong_to
from service.base.signals import leave_to_supervisor
from service.instance.kept_process import ProcessProblem

T = TypeVar("T")


class Control:
    """The socket to the supervisor. Create it first; it reads the arguments of the process."""

    def __init__(self) -> None:
        parent, descriptor = (int(argument) for argument in sys.argv[1:3])
        belong_to(parent)
        leave_to_supervisor()
        self._socket = socket.socket(fileno=descriptor)

    def take_orders(self, of: type[T]) -> T:
        """Returns the first line from the supervisor. From then on, this process ends when the supervisor does."""
        line = b""
        while not line.endswith(b"\n"):
            part = self._socket.recv(65536)
            if not part:
                sys.exit(1)
            line += part
        threading.Thread(target=self._end_with_supervisor, daemon=True).start()
        return decoder_of(of).decode(line)

    def report(self, problem: str | None) -> None:
        self._socket.sendall(msgspec.json.encode(ProcessProblem(problem)) + b"\n")

    def _end_with_supervisor(self) -> None:
        self._socket.recv(1)  # the supervisor sends no more: this returns when it ends, even if it was killed
        os._exit(1)


def report_changes(report: Callable[[str | None], None]) -> Callable[[str | None], None]:
    """Returns a function that passes a problem to `report` unless it equals the last one."""
    last: list[str | None] = [None]

    def report_change(problem: str | None) -> None:
        if problem != last[0]:
            last[0] = problem
            report(problem)

    return report_change
