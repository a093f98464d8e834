"""The process that watches an instance's inbox: ``python -m service.instance.watcher_main <control fd>``.

The supervisor starts it. It is no serving process because it handles raw drops (Decision 8); it publishes as the
command line does.
"""

import logging
import os
import socket
import sys
import threading

import msgspec

from config.processes import belong_to
from service.base import logs
from service.instance.watcher_process import WatcherProblem, WatchOrders
from service.publishing.inbox_events import log_event
from service.publishing.watching import make_watcher, stoppable


def _end_with(supervisor: socket.socket) -> None:
    supervisor.recv(1)  # nothing ever comes: it returns when the supervisor ends, however that happens
    os._exit(1)


def _read_line(control: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        part = control.recv(65536)
        if not part:
            sys.exit(1)
        line += part
    return line


def _watch(control: socket.socket) -> None:
    orders = msgspec.json.decode(_read_line(control), type=WatchOrders)
    settings = orders.settings
    logs.configure("json" if orders.log_json else "text", settings.log_level)
    threading.Thread(target=_end_with, args=(control,), daemon=True).start()

    def on_problem(problem: str | None) -> None:
        control.sendall(msgspec.json.encode(WatcherProblem(problem)) + b"\n")

    with stoppable(log_event):
        make_watcher(settings, settings.inbox or "", log_event, on_problem).watch()


def main() -> None:
    parent, control_fd = (int(argument) for argument in sys.argv[1:3])
    belong_to(parent)
    _watch(socket.socket(fileno=control_fd))
    logging.shutdown()
    os._exit(0)  # the listening thread cannot be ended, and libraries complain of it at an orderly exit


if __name__ == "__main__":
    main()
