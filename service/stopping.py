"""How workers are stopped so that nobody who connects meanwhile is reset: an answer, or a refusal."""

import asyncio
import signal
import socket
from collections.abc import Sequence

from service import control
from service.quota.flusher import STOP_SECONDS
from service.sockets import refuse_new
from service.worker_process import WorkerProcess

# After the requests under way a worker stores what it counted, or spools it.
LAST_SECONDS = 4 + STOP_SECONDS


async def stop_workers(
    workers: Sequence[WorkerProcess], keepers: "Sequence[asyncio.Task[None]]", listening: socket.socket, drain: float
) -> None:
    """Tells `workers` to stop, kills those that do not within `drain` seconds and some, and closes `listening`.

    `workers` is looked at again at the end. `keepers` end when their workers have.
    """
    for worker in workers:
        worker.signal(signal.SIGTERM)
    lame_duck = control.LameDuck.within(drain)
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
