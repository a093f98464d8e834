"""How an instance stops: nobody who connects meanwhile is reset, and it ends whatever happens."""

import asyncio
import logging
import os
import signal
import socket
import threading
from collections.abc import Sequence

from service.base import messages
from service.base.sockets import refuse_new
from service.instance.worker_process import WorkerProcess
from service.quota.flusher import STOP_SECONDS

log = logging.getLogger("forecast.supervisor")

# For what is left to do when nothing is waited for any more.
_LAST_RESORT_SECONDS = 5.0
# After the requests under way a worker stores what it counted, or spools it.
LAST_SECONDS = 4 + STOP_SECONDS


class LastResort:
    """Ends the process some seconds after it was started, unless it is cancelled before.

    A thread that waits for a disk has no other end, and whoever shuts down waits for it.
    """

    def __init__(self) -> None:
        self._timer = threading.Timer(_LAST_RESORT_SECONDS, self._end)
        self._timer.daemon = True

    def start(self) -> None:
        """Once is enough; more does no harm."""
        if self._timer.ident is None:
            self._timer.start()

    def cancel(self) -> None:
        self._timer.cancel()

    @staticmethod
    def _end() -> None:
        log.error("something does not end; leaving it behind")
        os._exit(1)


async def stop_workers(
    workers: Sequence[WorkerProcess], keepers: "Sequence[asyncio.Task[None]]", listening: socket.socket, drain: float
) -> None:
    """Tells `workers` to stop, kills those that do not within `drain` seconds and some, and closes `listening`.

    `workers` is looked at again at the end. `keepers` end when their workers have.
    """
    for worker in workers:
        worker.signal(signal.SIGTERM)
    lame_duck = messages.LameDuck.within(drain)
    refusing = asyncio.get_running_loop().call_later(lame_duck.inviting, _refuse_and_close, listening)
    pending = {task for task in keepers if not task.done()}
    if pending:
        # the workers' own deadlines, and a moment for them to notice
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
    listening.close()  # the workers' own stay: whoever waits is theirs
