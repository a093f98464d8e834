"""One worker process, which the supervisor starts. Arguments: PARENT CONTROL_FD LISTENING_FD."""

import logging
import os
import signal
import socket
import sys

from config.processes import belong_to, collect_seldom, name_process, offer_to_kill
from service.base.signals import leave_to_supervisor

# Answers and connections leave no cycles for the garbage collector, and each connection is some 40 objects: while
# thousands are opened, collection would take two fifths of the time, and a third of a second at once.
_COLLECT_AFTER_OBJECTS = 200_000


def main() -> None:
    parent, control_fd, listening_fd = (int(argument) for argument in sys.argv[1:4])
    leave_to_supervisor()
    # a terminal sends them to all processes; the supervisor decides when to drain
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    belong_to(parent)
    name_process("worker")
    offer_to_kill(300)
    collect_seldom(_COLLECT_AFTER_OBJECTS)
    _serve(socket.socket(fileno=control_fd), socket.socket(fileno=listening_fd))
    logging.shutdown()
    os._exit(0)  # an orderly exit would wait for threads whose look-ups hang


def _serve(control_socket: socket.socket, listening: socket.socket) -> None:
    # imported last: it takes a third of a second, during which the supervisor may end
    import uvloop

    from service.worker.serving import work

    uvloop.run(work(control_socket, listening))
