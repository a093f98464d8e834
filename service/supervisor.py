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
from service import embedded
from service.app import Endpoints
from service.cache.purging import purge_shared
from service.control import Orders
from service.embedded import EmbeddedServers
from service.embedded_runtime import EmbeddedError
from service.inbox_status import Status, read_status
from service.keys import pepper
from service.operators.changes import Changes, Purged
from service.operators.listener import OperatorsListener
from service.operators.state import InstanceState, WorkerState
from service.probe import check_answers_redis
from service.sockets import StartError, bind, url_of
from service.telemetry import Snapshot, Telemetry
from service.watcher_process import WatcherProcess
from service.workers import Workers
from warehouse.errors import CatalogError, FilesHang
from warehouse.file_access import FileAccess, within
from warehouse.instances import InstanceFile, InstanceRecord

log = logging.getLogger("forecast.supervisor")

_TEND_SECONDS = 0.25
# Threads for the data folder's files, should accesses never return: nobody replaces a supervisor.
_FILE_THREADS = 4
# At the end, for a record that can also be left: its lock goes with this process.
_CLOSE_SECONDS = 1.0


class Supervisor:
    """`on_ready` is called once, with the two base URLs, when the first worker serves."""

    def __init__(
        self, settings: Settings, *, log_json: bool, on_ready: Callable[[str, str], None] | None = None
    ) -> None:
        self._settings = settings
        self._log_json = log_json
        self._on_ready = on_ready
        self._workers = Workers(worker_count(settings), self._reported)
        self._draining = False
        self._stopping = asyncio.Event()
        self._changed = asyncio.Event()
        self._written: InstanceRecord | None = None
        self._records = FileAccess(_FILE_THREADS)
        self._statuses = FileAccess(_FILE_THREADS)
        self._locks = FileAccess()
        self._reading = asyncio.Lock()
        self._inbox = Status()
        self._watcher = WatcherProcess(settings, log_json=log_json)

    async def run(self) -> None:
        """Serves until told to stop by SIGTERM or SIGINT; a second signal stops at once.

        Raises:
            StartError: if a port is taken, the data folder cannot be written, or a Redis URL cannot be right.
        """
        settings = self._settings
        embedded.wanted(settings)  # before anything is bound: a forgotten URL is what the operator must hear of
        with contextlib.ExitStack() as stack:
            self._partners = stack.enter_context(bind(settings.listen_host, settings.listen_port, "listen_port"))
            self._operators = stack.enter_context(bind(settings.operator_host, settings.operator_port, "operator_port"))
            self._servers = self._start_embedded()
            stack.callback(self._servers.stop)
            self._orders = self._make_orders()
            self._instance = self._open_instance()
            stack.callback(within, _CLOSE_SECONDS, self._instance.close)
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
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._told_to_stop)
        endpoints = self._orders.endpoints
        changes = Changes(endpoints.keys_url, endpoints.pepper, self._settings.data_path, self._purge)
        operators = OperatorsListener(self._settings, self._operators, changes)
        operators.start(self.state, self.sums)
        self._workers.start(self._orders, self._partners)
        tasks = [
            asyncio.create_task(self._tend(), name="tend"),
            asyncio.create_task(self._keep_record(), name="keep the instance record"),
        ]
        if self._settings.inbox is not None:
            self._watcher.start()
        await self._stopping.wait()
        await asyncio.gather(self._watcher.stop(), self._workers.stop(self._settings.drain))
        for task in tasks:
            task.cancel()
        await asyncio.gather(operators.stop(), *tasks, return_exceptions=True)

    def _told_to_stop(self) -> None:
        if self._draining:
            log.warning("told to stop again: stopping at once")
            self._watcher.signal(signal.SIGKILL)
            self._workers.kill()
            return
        log.info("stopping: finishing requests, at most %g s", self._settings.drain)
        self._draining = True
        self._stopping.set()

    def _reported(self) -> None:
        self._changed.set()
        if self._on_ready is not None:
            ready, self._on_ready = self._on_ready, None
            ready(url_of(self._partners), url_of(self._operators))

    # --- watching ------------------------------------------------------------------------------------------------

    async def _tend(self) -> None:
        """Replaces dead embedded servers, and asks workers how they are."""
        while True:
            await asyncio.sleep(_TEND_SECONDS)
            try:
                self._workers.ask()
                if not self._servers.owned:  # in a thread, because it touches the data folder
                    what = f"locking {self._settings.data_path}/embedded.lock"
                    await self._locks.run(what, self._servers.claim, wait=_TEND_SECONDS)
                for role in self._servers.tend() if self._servers.owned else ():
                    log.warning("started the embedded server for %s again", role)
            except FilesHang as error:
                log.debug("%s", error)
            except Exception:
                log.exception("tending failed; trying again")

    async def _keep_record(self) -> None:
        """Writes what workers serve, whenever that changes."""
        while True:
            try:
                await self._write_record()
            except FilesHang as error:
                log.debug("%s", error)
            except Exception:
                log.exception("the instance record is not kept; trying again")
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), _TEND_SECONDS)

    async def _write_record(self) -> None:
        record = InstanceRecord(
            instance=str(os.getpid()),
            pid=os.getpid(),
            host=socket.gethostname(),
            operator_url=url_of(self._operators),
            releases=tuple(worker.report.release for worker in self._workers.all if worker.report is not None),
        )
        if record != self._written:
            try:
                what = f"writing {self._instance.record}"
                await self._records.run(what, self._instance.write, record, wait=1)
            except OSError as error:
                log.error("cannot write the instance record: %s", error)
                return
            self._written = record

    # --- what operators see --------------------------------------------------------------------------------------

    def state(self) -> InstanceState:
        workers = tuple(WorkerState(worker.pid, worker.report, worker.resident_bytes()) for worker in self._workers.all)
        return InstanceState(
            workers=workers,
            wanted_workers=self._workers.wanted,
            restarts=self._workers.restarts,
            draining=self._draining,
            files_hang=self._hang(),
            inbox=self._inbox,
            inbox_problem=self._watcher.problem,
        )

    def _hang(self) -> str | None:
        hang = self._records.hang or self._statuses.hang or self._locks.hang
        return str(hang) if hang is not None else None

    async def _purge(self) -> Purged:
        """The shared cache first: the near ones would be filled from it again. Raises StoreUnavailable."""
        near = sum(worker.report.near_entries for worker in self._workers.all if worker.report is not None)
        try:
            return Purged(near, await purge_shared(self._orders.endpoints.cache_url))
        finally:
            await asyncio.gather(*(worker.purge() for worker in self._workers.all))

    async def _read_inbox(self) -> None:
        folder = self._settings.data_path
        async with self._reading:
            with contextlib.suppress(FilesHang):  # `state` says so
                self._inbox = await self._statuses.run(f"reading {folder}/inbox.json", read_status, folder, wait=1)

    async def sums(self) -> Snapshot:
        """Figures of all workers that there are and were, as of now; `state` has the inbox's from then on."""
        await asyncio.gather(self._read_inbox(), *(worker.fresh_report() for worker in self._workers.all))
        total = Telemetry()
        total.add(self._workers.retired.snapshot())
        for worker in self._workers.all:
            if worker.report is not None:
                total.add(worker.report.telemetry)
        return total.snapshot()


def serve(settings: Settings, *, log_json: bool, on_ready: Callable[[str, str], None] | None = None) -> None:
    """Runs an instance until it is told to stop. Raises StartError."""

    async def run() -> None:
        await Supervisor(settings, log_json=log_json, on_ready=on_ready).run()

    try:
        uvloop.run(run())
    except CatalogError as error:
        raise StartError(str(error)) from None
