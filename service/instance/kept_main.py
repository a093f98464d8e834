"""The process that a `KeptProcess` keeps alive. Arguments: PARENT CONTROL_FD.

It watches the inbox or mirrors the store of releases, reports its problem, and ends with its supervisor. The inbox's
watcher handles raw drops, so it must not serve requests (Decision 8). It publishes like the command line.
"""

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from config.decoders import decoder_of
from config.processes import belong_to, name_process
from config.settings import Settings
from service.base import logs
from service.base.ipc import KeptOrders
from service.base.signals import leave_to_supervisor
from service.inbox.report import log_event
from service.inbox.watcher import make_watcher, stoppable
from service.publishing.releases import forget_releases, open_releases_store
from service.publishing.warming import warm_release
from warehouse.releases.catalog import Catalog, Manifest
from warehouse.upstream.mirror import Mirror

log = logging.getLogger("forecast.mirror")

_POLL_SECONDS = 0.5
_IDLE_SECONDS = 0.2


class Control:
    """The socket to the supervisor. Create it first; it reads the arguments of the process."""

    def __init__(self) -> None:
        parent, descriptor = (int(argument) for argument in sys.argv[1:3])
        belong_to(parent)
        leave_to_supervisor()
        self._socket = socket.socket(fileno=descriptor)
        self._reported: str | None = None

    def take_orders(self) -> KeptOrders:
        """Returns the first line from the supervisor. From then on, this process ends when the supervisor does."""
        with self._socket.makefile("rb") as lines:
            line = lines.readline()
        if not line.endswith(b"\n"):
            sys.exit(1)
        threading.Thread(target=self._end_with_supervisor, daemon=True).start()
        orders = decoder_of(KeptOrders).decode(line)
        logs.configure("json" if orders.log_json else "text", orders.settings.log_level)
        return orders

    def report(self, problem: str | None) -> None:
        """Reports a problem, or None once it is solved; does nothing if it is the last one."""
        if problem != self._reported:
            self._reported = problem
            self._socket.sendall(msgspec.json.encode(problem) + b"\n")

    def _end_with_supervisor(self) -> None:
        self._socket.recv(1)  # the supervisor sends no more: this returns when it ends, even if it was killed
        os._exit(1)


def main() -> None:
    control = Control()
    orders = control.take_orders()
    settings = orders.settings
    name_process(orders.task)
    if orders.task == "mirror":
        _run_mirror(settings, orders.instance, control.report)
    else:
        with stoppable(log_event):
            make_watcher(settings, log_event, control.report).watch()
    logging.shutdown()
    os._exit(0)  # a normal exit would wait for threads that cannot be stopped


def _work(mirror: Mirror) -> None:
    pause = threading.Event()
    while True:
        try:
            worked = mirror.work()
        except Exception:  # an error with one release must not end the mirror
            log.exception("fetch failed; will retry")
            worked = False
        if not worked:
            pause.wait(_IDLE_SECONDS)


def _run_mirror(settings: Settings, instance: str, report: Callable[[str | None], None]) -> None:
    """Mirrors until SIGTERM; reports the problem of the store after each look at it."""

    def warm(folder: Path, manifest: Manifest) -> tuple[str, ...]:
        return tuple(finding.message for finding in warm_release(settings, folder, manifest, lambda _: None))

    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    forget = partial(forget_releases, settings)
    mirror = Mirror(open_releases_store(settings), Catalog(settings.data_path), instance, warm, forget)
    threading.Thread(target=_work, args=(mirror,), daemon=True).start()
    while not stopping.is_set():
        mirror.look()
        report(mirror.problem)
        stopping.wait(_POLL_SECONDS)
    mirror.end()
