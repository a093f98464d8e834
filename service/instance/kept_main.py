"""The other end of a kept process: it takes its orders, says what keeps it from working, ends with its supervisor."""

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
    """The socket to the supervisor. Made first, from the arguments of the process."""

    def __init__(self) -> None:
        parent, descriptor = (int(argument) for argument in sys.argv[1:3])
        belong_to(parent)
        leave_to_supervisor()
        self._socket = socket.socket(fileno=descriptor)

    def take_orders(self, of: type[T]) -> T:
        """The first line from the supervisor. From then on, this process ends when the supervisor does."""
        line = b""
        while not line.endswith(b"\n"):
            part = self._socket.recv(65536)
            if not part:
                sys.exit(1)
            line += part
        threading.Thread(target=self._end_with_supervisor, daemon=True).start()
        return decoder_of(of).decode(line)

    def tell(self, problem: str | None) -> None:
        self._socket.sendall(msgspec.json.encode(ProcessProblem(problem)) + b"\n")

    def _end_with_supervisor(self) -> None:
        self._socket.recv(1)  # nothing ever comes: it returns when the supervisor ends, however that happens
        os._exit(1)


def teller(tell: Callable[[str | None], None]) -> Callable[[str | None], None]:
    """Calls `tell` with a problem if it is not the one that was told last."""
    told: list[str | None] = [None]

    def tell_once(problem: str | None) -> None:
        if problem != told[0]:
            told[0] = problem
            tell(problem)

    return tell_once
