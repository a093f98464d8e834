"""Keeps the workers of an instance alive. A worker that died or does not respond is replaced at once; a worker whose
files hang, as soon as its successor serves.
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
from service.base.ipc import Orders, PartnerSample, Sample, Shared, WorkerReport
from service.base.tasks import end_task, hold_until_done, keep_running, wait_until_set
from service.base.telemetry import Telemetry
from service.instance.forks import Forks
from service.instance.silence import LOOK_SECONDS
from service.instance.stopping import LAST_SECONDS, stop_workers
from service.instance.worker_process import WorkerProcess, describe_end

log = logging.getLogger("forecast.supervisor")

_WAIT_SECONDS = 0.02
# Maximum wait for the end of a killed worker.
_DEATH_SECONDS = 1.0
# A worker that hangs this long is replaced: every request gets a reply within 5 s.
_HUNG_SECONDS = 5.0
# A worker that takes over from a hanging one must serve within the first, or it hangs on the same files. Each retry
# gets twice as long, and starts after a pause of the same length.
_FIRST_PATIENCE_SECONDS = 5.0
_LONGEST_PATIENCE_SECONDS = 60.0
# Resets the back-off after this long.
_FORGET_SECONDS = 600.0

# Longest pause after workers that were killed because memory ran out: each new one takes memory from the others.
_STARVED_BACKOFF_SECONDS = 30.0

# Maximum wait for the other workers once one serves: a worker that cannot start must not delay the notice.
_PATIENCE_SECONDS = 5.0


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
        self.start_problem: str | None = None  # why the last worker that never served ended
        self.retired = Telemetry()  # figures of workers that ended
        self.on_samples: Callable[[list[Sample], list[PartnerSample]], None] = lambda _, __: None
        self.on_end: Callable[[str], None] = lambda _: None  # of a worker that is replaced
        self.last_end = ""
        self._shared = Shared(wanted)
        self._report = on_report
        self._stopping = asyncio.Event()
        self._replacing = asyncio.Lock()
        self._patience = _FIRST_PATIENCE_SECONDS
        self._next_try = 0.0
        self._tasks: set[asyncio.Task[Any]] = set()

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
        """Requests a report of each; kills those that hang."""
        for worker in self.all:
            worker.look()
            if worker.silence.hangs and not worker.given_up:
                log.error("worker %d does not respond (%s); killing it", worker.pid, worker.silence)
                worker.give_up()
        return LOOK_SECONDS

    def sample(self, share: float) -> None:
        """Sets the share of requests, other than errors and slow ones, that every worker logs."""
        self._orders = msgspec.structs.replace(self._orders, logged_share=share)
        for worker in self.all:
            worker.send(b"%b%r\n" % (ipc.SAMPLE, share))

    def share(self, shared: Shared) -> None:
        """Sends every worker the state that all instances share."""
        if shared == self._shared:
            return
        self._shared = shared
        for worker in self.all:
            worker.send(b"%b%b\n" % (ipc.SHARED, msgspec.json.encode(shared)))

    @property
    def serving(self) -> int:
        """How many workers serve and do not seem to hang."""
        return sum(worker.report is not None and not worker.silence.is_long for worker in self.all)

    async def wait_until_ready(self) -> None:
        """Returns when all serve, or only some if the others take long.

        It waits for all, so that a status command right afterwards does not report workers that are still starting.
        """
        loop = asyncio.get_running_loop()
        none_served = loop.time()
        while self.serving < self.wanted:
            if not self.serving:
                none_served = loop.time()
            elif loop.time() - none_served > _PATIENCE_SECONDS:
                return
            await asyncio.sleep(_WAIT_SECONDS)

    @property
    def everywhere(self) -> int:
        """How many workers all known instances have."""
        return self._shared.workers

    async def purge(self) -> None:
        """Empties the near caches; waits for that for a limited time."""
        await asyncio.gather(*(worker.purge() for worker in self.all))

    def _begin(self, work: Coroutine[Any, Any, object], name: str) -> None:
        hold_until_done(asyncio.create_task(work, name=name), self._tasks)

    def _on_report(self, report: WorkerReport) -> None:
        self.on_samples(report.samples, report.partners)
        if self.serving >= self.wanted:
            self.start_problem = None
        self._report()

    async def _keep(self) -> float:
        """Keeps one worker alive: replaces it at once when it dies, with back-off if it dies during its start."""
        loop = asyncio.get_running_loop()
        backoff, starved = Backoff(), Backoff(longest=_STARVED_BACKOFF_SECONDS, settled=_FORGET_SECONDS)
        successor: WorkerProcess | None = None
        while not self._stopping.is_set():
            worker = successor or await self._start_one(self._orders)
            if worker is None:
                await wait_until_set(self._stopping, LONGEST_BACKOFF_SECONDS)
                continue
            began = loop.time()
            ending = asyncio.create_task(self._wait_for_exit(worker))
            successor = await self._successor(worker, ending)
            if self._stopping.is_set():
                await ending
                if successor is not None:
                    await self._wait_for_exit(successor)
                break
            self.restarts += 1
            self.recent.add(time.monotonic())
            if successor is not None:
                log.error("worker %d hangs; worker %d serves in its place", worker.pid, successor.pid)
                hung = worker.report.hung if worker.report is not None else "no report"
                self._note_end(f"worker {worker.pid} was replaced: it hangs ({hung})")
                self._begin(self._leave(worker, ending), "replace a worker")
                continue
            status = ending.result() if ending.done() else "killed, but has not exited yet"
            last_line = worker.report.last_line if worker.report is not None else None
            silence = worker.silence if worker.given_up else None
            why = describe_end(status, silence, last_line)
            if worker.report is None or worker.starved:
                self.start_problem = why
            if worker.report is None:
                log.error("worker %d ended before it served (%s); trying again", worker.pid, why)
                self._note_end(f"worker {worker.pid} ended before it served: {why}")
            else:
                log.error("worker %d ended (%s); replacing it", worker.pid, why, extra={"worker": worker.pid})
                self._note_end(f"worker {worker.pid} was replaced: {why}")
            if not ending.done():
                self._begin(self._leave(worker, ending), "reap a worker")
            await wait_until_set(self._stopping, (starved if worker.starved else backoff).after(loop.time() - began))
        return 0.0

    def _note_end(self, text: str) -> None:
        self.last_end = text
        self.on_end(text)

    async def _start_one(self, orders: Orders) -> WorkerProcess | None:
        try:
            current = msgspec.structs.replace(orders, shared=self._shared)
            worker = await WorkerProcess.start(self._forks, current, self._listening, self._on_report)
        except OSError as error:
            self.start_problem = str(error)
            log.error("cannot start a worker: %s; trying again", error)
            return None
        self.all.append(worker)
        if self._stopping.is_set():  # since the start began: the others already got the signal
            worker.signal(signal.SIGTERM)
        return worker

    async def _wait_for_exit(self, worker: WorkerProcess) -> str:
        try:
            status = await worker.wait_for_exit()
        finally:
            worker.signal(signal.SIGKILL)  # a worker whose socket has closed is replaced
            self.all.remove(worker)
        if worker.report is not None:
            self.retired.add(worker.report.telemetry)
        return status

    # --- workers that hang ---------------------------------------------------------------------------------------

    async def _successor(self, worker: WorkerProcess, ending: "asyncio.Task[str]") -> WorkerProcess | None:
        """Waits until `worker` has ended (returns None), or until its files hang and its successor serves (returns
        that).
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
        """Starts a worker in place of `hung`; returns None if that does not serve in time either."""
        loop = asyncio.get_running_loop()
        patience = self._patience
        self._patience = min(_LONGEST_PATIENCE_SECONDS, 2 * patience)
        orders = msgspec.structs.replace(self._orders, takes_over=hung.report is not None and bool(hung.report.release))
        worker = await self._start_one(orders)
        deadline = loop.time() + patience
        while worker is not None and (worker.report is None or worker.report.hung is not None):
            if loop.time() > deadline or self._stopping.is_set():
                log.error("worker %d hangs, and its successor did not serve within %g s", hung.pid, patience)
                worker.signal(signal.SIGKILL)
                self._begin(self._wait_for_exit(worker), "reap a worker")
                worker = None
            else:
                await wait_until_set(self._stopping, _WAIT_SECONDS)
        self._next_try = loop.time() + patience
        return worker

    async def _leave(self, worker: WorkerProcess, ending: "asyncio.Task[str]") -> None:
        """Lets the worker finish its requests, as when an instance stops."""
        worker.signal(signal.SIGTERM)
        await asyncio.wait([ending], timeout=self._orders.settings.drain + LAST_SECONDS)
        worker.signal(signal.SIGKILL)
        await ending
