"""Stops an instance: no connection is reset meanwhile, and the process always ends (Decision 21)."""

import asyncio
import logging
import os
import signal
import socket
import threading
from collections.abc import Sequence

from service.base import ipc
from service.base.sockets import refuse_new
from service.instance.worker_process import WorkerProcess
from service.quota.flusher import STOP_SECONDS

log = logging.getLogger("forecast.supervisor")

# Maximum time for the last cleanup.
_LAST_RESORT_SECONDS = 5.0
# After the last request, a worker stores or spools what it counted.
LAST_SECONDS = 4 + STOP_SECONDS


class LastResort:
    """Ends the process some seconds after `start`, unless it is cancelled before. One per supervisor.

    Otherwise a shutdown would wait for a thread that hangs on a disk.
    """

    def __init__(self) -> None:
        self._timer = threading.Timer(_LAST_RESORT_SECONDS, self._end)
        self._timer.daemon = True

    def start(self) -> None:
        """Starts the timer. Idempotent."""
        if self._timer.ident is None:
            self._timer.start()

    def cancel(self) -> None:
        self._timer.cancel()

    @staticmethod
    def _end() -> None:
        log.error("a thread hangs; exiting without it")
        os._exit(1)


async def stop_workers(
    workers: Sequence[WorkerProcess], keepers: "Sequence[asyncio.Task[None]]", listening: socket.socket, drain: float
) -> None:
    """Stops `workers`, kills those that still run after `drain` + `LAST_SECONDS`, closes `listening`.

    Reads `workers` again at the end, to find those that were started meanwhile. `keepers` end after their workers.
    """
    for worker in workers:
        worker.signal(signal.SIGTERM)
    lame_duck = ipc.LameDuck.within(drain)
    refusing = asyncio.get_running_loop().call_later(lame_duck.inviting, _refuse_and_close, listening)
    pending = {task for task in keepers if not task.done()}
    if pending:
        # longer than the workers' own deadlines
        _, pending = await asyncio.wait(pending, timeout=drain + LAST_SECONDS)
    refusing.cancel()
    listening.close()
    for worker in list(workers):
        worker.signal(signal.SIGKILL)
    for task in pending:
        task.cancel()
    await asyncio.gather(*keepers, return_exceptions=True)


def _refuse_and_close(listening: socket.socket) -> None:
    refuse_new(listening)
    listening.close()  # the workers' copies stay open: they accept the waiting connections
