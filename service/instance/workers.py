"""The workers of an instance: one that died or does not respond is replaced; one whose files hang, as soon as another
serves in its place.
"""

import asyncio
import logging
import signal
import socket
import time
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from service.base import ipc
from service.base.backoff import LONGEST_BACKOFF_SECONDS, Backoff, Restarts
from service.base.ipc import Orders, Sample, Shared
from service.base.tasks import end_task, hold_until_done, keep_running
from service.base.telemetry import Telemetry
from service.instance.forks import Forks
from service.instance.silence import LOOK_SECONDS
from service.instance.stopping import LAST_SECONDS, stop_workers
from service.instance.worker_process import WorkerProcess

log = logging.getLogger("forecast.supervisor")

_WAIT_SECONDS = 0.05
# For the end of a worker that was killed.
_DEATH_SECONDS = 1.0
# A worker that hangs this long is to be replaced: every request is answered within 5 s.
_HUNG_SECONDS = 5.0
# A worker that takes over from a hanging one must serve within the first, or it hangs on the same files. Each further
# try is given twice as long, and begins after as long again.
_FIRST_PATIENCE_SECONDS = 5.0
_LONGEST_PATIENCE_SECONDS = 60.0
# Resets the back-off after this long.
_FORGET_SECONDS = 600.0

# From the first worker that serves, for the others: one that cannot start must not keep the addresses back.
_PATIENCE_SECONDS = 5.0


class FirstWords:
    """Calls `say` once, when all `wanted` workers serve, or some of them and the others take long. `serving` tells how
    many do. The supervisor owns it.

    Who reads it may ask at once how the instance is, and is to hear of no worker that merely starts.
    """

    def __init__(self, wanted: int, serving: Callable[[], int], say: Callable[[], None]) -> None:
        self._wanted = wanted
        self._serving = serving
        self._say = say
        self._said = False
        self._waiting: asyncio.TimerHandle | None = None

    def reported(self) -> None:
        """A worker has reported."""
        if self._said:
            return
        if self._serving() >= self._wanted:
            self._tell()
        elif self._waiting is None and self._serving():
            self._waiting = asyncio.get_running_loop().call_later(_PATIENCE_SECONDS, self._tell_of_some)

    def _tell_of_some(self) -> None:
        self._waiting = None
        if self._serving():  # else it has died: the next one that serves begins anew
            self._tell()

    def _tell(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        self._said = True
        self._say()


class Workers:
    """The workers of one instance, owned by its supervisor. Use it from the main thread: a worker dies with the thread
    that started it.
    """

    def __init__(self, wanted: int, on_report: Callable[[], None], forks: Forks) -> None:
        self.wanted = wanted
        self._forks = forks
        self.all: list[WorkerProcess] = []  # including those that are starting or leaving
        self.restarts = 0  # workers that were replaced
        self.recent = Restarts()
        self.start_problem: str | None = None  # why the last worker that ended before it served did so
        self.retired = Telemetry()  # figures of workers that ended
        self.on_samples: Callable[[list[Sample]], None] = lambda _: None
        self._shared = Shared(wanted)
        self._report = on_report
        self._stopping = asyncio.Event()
        self._replacing = asyncio.Lock()
        self._patience = _FIRST_PATIENCE_SECONDS
        self._next_try = 0.0
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, orders: Orders, listening: socket.socket) -> None:
        self._orders = orders
        self._listening = listening
        self._looking = keep_running("look at the workers", self._look)
        for _ in range(self.wanted):
            hold_until_done(keep_running("keep a worker", self._keep, stopping=self._stopping), self._tasks)

    async def stop(self, drain: float) -> None:
        """Stops all within `drain` and `LAST_SECONDS`; closes the listening socket."""
        self._stopping.set()
        await stop_workers(self.all, list(self._tasks), self._listening, drain)
        await end_task(self._looking)

    def kill(self) -> None:
        for worker in self.all:
            worker.signal(signal.SIGKILL)

    async def _look(self) -> float:
        """Asks all for a report; kills those that hang."""
        for worker in self.all:
            worker.look()
            if worker.silence.hangs and not worker.given_up:
                log.error("worker %d does not respond (%s); killing it", worker.pid, worker.silence)
                worker.give_up()
        return LOOK_SECONDS

    def sample(self, share: float) -> None:
        """From now on, every worker logs so large a share of the requests that are neither errors nor slow."""
        self._orders = msgspec.structs.replace(self._orders, logged_share=share)
        for worker in self.all:
            worker.tell(b"%b%r\n" % (ipc.SAMPLE, share))

    def share(self, shared: Shared) -> None:
        """From now on, this is what all instances have in common."""
        if shared == self._shared:
            return
        self._shared = shared
        for worker in self.all:
            worker.tell(b"%b%b\n" % (ipc.SHARED, msgspec.json.encode(shared)))

    @property
    def serving(self) -> int:
        """How many workers serve and do not seem to hang."""
        return sum(worker.report is not None and not worker.silence.is_long for worker in self.all)

    @property
    def everywhere(self) -> int:
        """How many workers there are in all instances that are known."""
        return self._shared.workers

    async def purge(self) -> None:
        """Empties the near caches; waits for that, but not for long."""
        await asyncio.gather(*(worker.purge() for worker in self.all))

    def _begin(self, work: Coroutine[Any, Any, None], name: str) -> None:
        hold_until_done(asyncio.create_task(work, name=name), self._tasks)

    def _on_report(self) -> None:
        if self.serving >= self.wanted:
            self.start_problem = None
        self._report()

    async def _keep(self) -> float:
        """Keeps one worker alive: replaces it at once when it dies, later and later if it dies of its start."""
        loop = asyncio.get_running_loop()
        backoff = Backoff()
        successor: WorkerProcess | None = None
        while not self._stopping.is_set():
            worker = successor or await self._started(self._orders)
            if worker is None:
                await self._pause(LONGEST_BACKOFF_SECONDS)
                continue
            began = loop.time()
            ending = asyncio.create_task(self._ended(worker))
            successor = await self._successor(worker, ending)
            if self._stopping.is_set():
                await ending
                if successor is not None:
                    await self._ended(successor)
                break
            self.restarts += 1
            self.recent.add(time.monotonic())
            if successor is not None:
                log.error("worker %d hangs; worker %d serves in its place", worker.pid, successor.pid)
                self._begin(self._leave(worker, ending), "replace a worker")
                continue
            status = ending.result() if ending.done() else "killed, but not gone yet"
            if worker.report is None:
                self.start_problem = status
                log.error("worker %d ended before it served (%s); trying again", worker.pid, status)
            else:
                log.error("worker %d ended (%s); replacing it", worker.pid, status, extra={"worker": worker.pid})
            if not ending.done():
                self._begin(self._leave(worker, ending), "reap a worker")
            await self._pause(backoff.after(loop.time() - began))
        return 0.0

    async def _started(self, orders: Orders) -> WorkerProcess | None:
        try:
            told = msgspec.structs.replace(orders, shared=self._shared)
            worker = await WorkerProcess.start(self._forks, told, self._listening, self._on_report)
            worker.on_samples = self.on_samples
        except OSError as error:
            self.start_problem = str(error)
            log.error("cannot start a worker: %s; trying again", error)
            return None
        self.all.append(worker)
        if self._stopping.is_set():  # meanwhile: all others have been told
            worker.signal(signal.SIGTERM)
        return worker

    async def _ended(self, worker: WorkerProcess) -> str:
        try:
            status = await worker.ended()
        finally:
            worker.signal(signal.SIGKILL)  # a worker that we cannot hear any more is replaced
            self.all.remove(worker)
        if worker.report is not None:
            self.retired.add(worker.report.telemetry)
        return status

    # --- workers that hang ---------------------------------------------------------------------------------------

    async def _successor(self, worker: WorkerProcess, ending: "asyncio.Task[str]") -> WorkerProcess | None:
        """Waits until `worker` has ended or was killed (None), or until its files hang and another serves in its place
        (returned).
        """
        while not ending.done():
            await asyncio.wait([ending], timeout=LOOK_SECONDS)
            if worker.given_up:
                await asyncio.wait([ending], timeout=_DEATH_SECONDS)
                return None
            if worker.hung_seconds < _HUNG_SECONDS:
                continue
            async with self._replacing:  # one at a time: each takes a worker's memory
                if not ending.done() and self._may_try():
                    successor = await self._try_another(worker)
                    if successor is not None:
                        return successor
        return None

    def _may_try(self) -> bool:
        now = asyncio.get_running_loop().time()
        if now - self._next_try > _FORGET_SECONDS:
            self._patience = _FIRST_PATIENCE_SECONDS
        return now >= self._next_try and not self._stopping.is_set()

    async def _try_another(self, hung: WorkerProcess) -> WorkerProcess | None:
        """Starts a worker in place of `hung`; None if it does not serve in time either."""
        loop = asyncio.get_running_loop()
        patience = self._patience
        self._patience = min(_LONGEST_PATIENCE_SECONDS, 2 * patience)
        orders = msgspec.structs.replace(self._orders, takes_over=hung.report is not None and bool(hung.report.release))
        worker = await self._started(orders)
        deadline = loop.time() + patience
        while worker is not None and (worker.report is None or worker.report.hung is not None):
            if loop.time() > deadline or self._stopping.is_set():
                log.error("worker %d hangs, and its successor did not serve within %g s", hung.pid, patience)
                worker.signal(signal.SIGKILL)
                self._begin(self._reap(worker), "reap a worker")
                worker = None
            else:
                await self._pause(_WAIT_SECONDS)
        self._next_try = loop.time() + patience
        return worker

    async def _leave(self, worker: WorkerProcess, ending: "asyncio.Task[str]") -> None:
        """Lets the worker finish its requests, as when an instance stops."""
        worker.signal(signal.SIGTERM)
        await asyncio.wait([ending], timeout=self._orders.settings.drain + LAST_SECONDS)
        worker.signal(signal.SIGKILL)
        await ending

    async def _reap(self, worker: WorkerProcess) -> None:
        await self._ended(worker)

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return
