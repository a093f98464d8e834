"""One per instance: binds the sockets, starts and replaces workers, owns the embedded servers, serves operators."""

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import socket
from collections.abc import Callable

import uvloop

from config.settings import Settings
from config.sizing import worker_count
from config.urls import address
from service import embedded, tasks
from service.app import Endpoints
from service.cache.purging import purge_shared
from service.control import Orders
from service.embedded import EmbeddedServers
from service.embedded_runtime import EmbeddedError
from service.inbox_status import shown_status
from service.keys import pepper
from service.operators.changes import Changes, Purged
from service.operators.listener import OperatorsListener
from service.operators.state import InstanceState, WorkerState
from service.probe import check_answers_redis
from service.redis.tasks import end
from service.sockets import StartError, bind, url_of
from service.stopping import LastResort, stop_signals, stop_workers
from service.store_checks import StoreChecks
from service.tasks import keep_running
from service.telemetry import TASK_FAILURES, Snapshot, Telemetry
from service.watcher_process import WatcherProcess
from service.worker_process import WorkerProcess
from warehouse.errors import CatalogError
from warehouse.instances import InstanceFile, InstanceRecord

log = logging.getLogger("forecast.supervisor")

_TEND_SECONDS = 0.25
_FIRST_BACKOFF = 0.2
_LONGEST_BACKOFF = 5.0
# Operators can ask until the workers have ended, and have so long for their last answers.
_OPERATORS_SECONDS = 1.0
# A worker that lived this long did not die of its start.
_SETTLED_SECONDS = 10.0


class Supervisor:
    """`on_ready` is called once, with the two base URLs, when the first worker serves."""

    def __init__(
        self, settings: Settings, *, log_json: bool, on_ready: Callable[[str, str], None] | None = None
    ) -> None:
        self._settings = settings
        self._log_json = log_json
        self._on_ready = on_ready
        self._wanted = worker_count(settings)
        self._workers: list[WorkerProcess] = []
        self._retired = Telemetry()
        self._restarts = 0
        self._draining = False
        self._stops_at_once = False
        self._stopping = asyncio.Event()
        self._written: InstanceRecord | None = None
        self._watcher = WatcherProcess(settings, log_json=log_json)
        self.last_resort = LastResort()

    async def run(self) -> None:
        """Serves until told to stop by SIGTERM, SIGINT or SIGHUP; a second SIGTERM or SIGINT stops at once.

        Raises:
            StartError: if a port is taken, the data folder cannot be written, or a Redis URL cannot be right.
        """
        settings = self._settings
        embedded.wanted(settings)  # before anything is bound: a forgotten URL is what the operator must hear of
        async with contextlib.AsyncExitStack() as stack:
            self._partners = stack.enter_context(bind(settings.listen_host, settings.listen_port, "listen_port"))
            self._operators = stack.enter_context(bind(settings.operator_host, settings.operator_port, "operator_port"))
            self._servers = self._start_embedded()
            stack.push_async_callback(asyncio.to_thread, self._servers.stop)  # signals are heard meanwhile
            self._orders = self._make_orders()
            self._instance = self._open_instance()
            stack.callback(self._instance.close)
            await self._serve()

    def _start_embedded(self) -> EmbeddedServers:
        servers = EmbeddedServers(self._settings.data_path, embedded.wanted(self._settings))
        try:
            servers.ensure()
        except EmbeddedError as error:
            servers.stop()
            raise StartError(str(error)) from None
        return servers

    def _make_orders(self) -> Orders:
        urls = embedded.resolved(self._settings, self._servers)
        for role, url in urls.items():
            problem = check_answers_redis(url)
            if problem is not None:
                raise StartError(f"FORECAST_{role.upper()}_URL: {problem}")
        secret = pepper.obtain(self._settings.keys_pepper, self._settings.data_path)
        endpoints = Endpoints(urls["keys"], urls["cache"], secret)
        return Orders(self._settings, endpoints, self._log_json)

    def _open_instance(self) -> InstanceFile:
        try:
            return InstanceFile(self._settings.data_path, secrets.token_hex(8))
        except OSError as error:
            raise StartError(f"cannot write the data folder {self._settings.data_dir}: {error.strerror}") from None

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        for number in stop_signals():
            loop.add_signal_handler(number, self._told_to_stop, number)
        endpoints = self._orders.endpoints
        changes = Changes(endpoints.keys_url, endpoints.pepper, self._settings.data_path, self._purge)
        self._listener = OperatorsListener(self._settings, self._operators, changes)
        self._checks = StoreChecks(endpoints)
        self._checks.start()
        self._listener.start(self.state, self.sums)
        keepers = [
            keep_running("keep a worker", self._keep_worker, stopping=self._stopping) for _ in range(self._wanted)
        ]
        tending = keep_running("tend", self._tend)
        if self._settings.inbox is not None:
            self._watcher.start()
        await self._stopping.wait()
        drained = loop.time() + self._settings.drain
        stopping = stop_workers(self._workers, keepers, self._partners, self._settings.drain)
        await asyncio.gather(self._watcher.stop(), stopping)
        await end(tending)
        left = 0.0 if self._stops_at_once else max(_OPERATORS_SECONDS, drained - loop.time())
        await asyncio.gather(self._listener.stop(left), self._checks.stop(), return_exceptions=True)

    # --- workers -------------------------------------------------------------------------------------------------

    async def _keep_worker(self) -> float:
        """Keeps one worker alive: a new one at once when it dies, later and later if it dies of its start."""
        loop = asyncio.get_running_loop()
        backoff = 0.0
        while not self._draining:
            try:
                worker = WorkerProcess.start(self._orders, self._partners, self._reported)
            except OSError as error:
                log.error("cannot start a worker: %s; trying again", error)
                await asyncio.sleep(_LONGEST_BACKOFF)
                continue
            self._workers.append(worker)
            began = loop.time()
            try:
                status = await worker.ended()
            finally:
                worker.signal(signal.SIGKILL)  # one that we cannot follow any more is replaced
                self._workers.remove(worker)
            if worker.report is not None:
                self._retired.add(worker.report.telemetry)
            if self._draining:
                break
            self._restarts += 1
            settled = loop.time() - began > _SETTLED_SECONDS
            log.error("worker %d ended (%s); replacing it", worker.pid, status, extra={"worker": worker.pid})
            backoff = 0.0 if settled else min(_LONGEST_BACKOFF, max(_FIRST_BACKOFF, backoff * 2))
            await asyncio.sleep(backoff)
        return 0.0

    def _told_to_stop(self, number: int) -> None:
        if not self._draining:
            log.info("stopping: finishing requests, at most %g s", self._settings.drain)
            self._draining = True
            self._stopping.set()
        elif number != signal.SIGHUP:  # of a closing terminal the shell tells, and the kernel once more
            log.warning("told to stop again: stopping at once")
            self._stop_at_once()

    def _stop_at_once(self) -> None:
        self._stops_at_once = True
        self.last_resort.start()
        self._watcher.signal(signal.SIGKILL)
        for worker in self._workers:
            worker.signal(signal.SIGKILL)
        self._listener.stop_at_once()
        self._servers.kill()

    def _reported(self) -> None:
        self._write_record()
        if self._on_ready is not None:
            ready, self._on_ready = self._on_ready, None
            ready(url_of(self._partners), url_of(self._operators))

    # --- watching ------------------------------------------------------------------------------------------------

    async def _tend(self) -> float:
        """Replaces dead embedded servers, and asks workers how they are; one that does not say is replaced."""
        for role in () if self._stops_at_once else self._servers.tend():
            log.warning("started the embedded server for %s again", role)
        for worker in self._workers:
            worker.ask()
            if worker.is_stuck():
                log.error("worker %d does not respond; killing it", worker.pid)
                worker.signal(signal.SIGKILL)
        self._write_record()
        return _TEND_SECONDS

    def _write_record(self) -> None:
        record = InstanceRecord(
            instance=str(os.getpid()),
            pid=os.getpid(),
            host=socket.gethostname(),
            operator_url=url_of(self._operators),
            releases=tuple(worker.report.release for worker in self._workers if worker.report is not None),
            cache=address(self._settings.cache_url),
        )
        if record != self._written:
            try:
                self._instance.write(record)
            except OSError as error:
                log.error("cannot write the instance record: %s", error)
                return
            self._written = record

    # --- what operators see --------------------------------------------------------------------------------------

    def state(self) -> InstanceState:
        workers = tuple(WorkerState(worker.pid, worker.report, worker.resident_bytes()) for worker in self._workers)
        return InstanceState(
            workers=workers,
            wanted_workers=self._wanted,
            restarts=self._restarts,
            draining=self._draining,
            inbox=shown_status(self._settings.data_path),
            inbox_problem=self._watcher.problem,
            store_problems=self._checks.problems,
        )

    async def _purge(self) -> Purged:
        """The shared cache first: the near ones would be filled from it again. Raises StoreUnavailable."""
        near = sum(worker.report.near_entries for worker in self._workers if worker.report is not None)
        try:
            return Purged(near, await purge_shared(self._orders.endpoints.cache_url))
        finally:
            await asyncio.gather(*(worker.purge() for worker in self._workers))

    async def sums(self) -> Snapshot:
        """Figures of all workers that there are and were, as of now."""
        await asyncio.gather(*(worker.fresh_report() for worker in self._workers))
        total = Telemetry()
        total.add(self._retired.snapshot())
        for task, failures in tasks.failures.items():
            total.count(TASK_FAILURES, task, amount=failures)
        for worker in self._workers:
            if worker.report is not None:
                total.add(worker.report.telemetry)
        return total.snapshot()


def serve(settings: Settings, *, log_json: bool, on_ready: Callable[[str, str], None] | None = None) -> None:
    """Runs an instance until it is told to stop. Raises StartError."""
    supervisor = Supervisor(settings, log_json=log_json, on_ready=on_ready)

    async def run() -> None:
        try:
            await supervisor.run()
        finally:
            supervisor.last_resort.start()

    try:
        uvloop.run(run())
    except CatalogError as error:
        raise StartError(str(error)) from None
    finally:
        supervisor.last_resort.cancel()
