"""The supervisor: binds the sockets, starts and replaces workers, owns the embedded servers, serves operators."""

import asyncio
import contextlib
import importlib
import logging
import os
import secrets
import signal
import socket
from collections.abc import Callable
from functools import partial

import uvloop

from config.resources import worker_count
from config.settings import Settings
from config.urls import address
from service.base import tracing
from service.base.ipc import Endpoints, KeptOrders, Orders, Shared
from service.base.signals import log_unused, stop_signals
from service.base.sockets import StartError, bind, url_of
from service.base.tasks import end_task, keep_running, wait_until_set
from service.embedded import owner
from service.embedded.owner import EmbeddedServers
from service.embedded.probe import check_answers_redis
from service.embedded.runtime import EmbeddedError
from service.instance.forks import Forks
from service.instance.kept_process import MAIN, KeptProcess
from service.instance.peers import Peers
from service.instance.registry import Peer
from service.instance.stand_in import StandIn
from service.instance.stopping import LastResort
from service.instance.view import InstanceView
from service.instance.workers import Workers
from service.keys import pepper
from service.operators.actions import Actions
from service.operators.keys.backend import KeyBackend
from service.operators.listener import OperatorsListener
from service.publishing.releases import open_releases
from service.redis.primary import Primary, open_store
from warehouse.files.file_access import FileAccess, returned_within
from warehouse.files.remedies import unwritable
from warehouse.releases.catalog import RELEASE_FORMAT
from warehouse.releases.instances import InstanceFile, InstanceRecord
from warehouse.schema.errors import CatalogError, FilesHang, StoreError

log = logging.getLogger("forecast.supervisor")

_TEND_SECONDS = 0.25
# Operators get replies until the workers have ended. The last replies then get the rest of the drain time, and at least
# this long.
_OPERATORS_SECONDS = 1.0
# Threads for accesses to the data folder that may never return: a supervisor is not replaced.
_FILE_THREADS = 4
# Timeout of a beat; no request waits for it.
_PEERS_SECONDS = 1.0
# Timeout for removing the instance's record at the end. A record that stays does no harm: its lock is released.
_CLOSE_SECONDS = 1.0


class Supervisor:
    """One instance, from its start to its end, in the process of `forecast serve`.

    `on_ready` is called once, with the base URLs of both listeners, when all workers serve, or only some if the others
    take long.
    """

    def __init__(
        self, settings: Settings, *, log_json: bool, on_ready: Callable[[str, str], None] | None = None
    ) -> None:
        self._settings = settings
        self._log_json = log_json
        self._on_ready = on_ready
        self._forks = Forks()
        self._changed = asyncio.Event()
        self._workers = Workers(worker_count(settings), self._changed.set, self._forks)
        self._stand_in = StandIn(self._workers)
        self._stops_at_once = False
        self._stopping = asyncio.Event()
        self._written: InstanceRecord | None = None
        self._unwritten: str | None = None
        self._records = FileAccess(_FILE_THREADS)
        self._locks = FileAccess()
        self._watcher = KeptProcess("inbox's watcher", self._forks)
        self._mirror = KeptProcess("mirror of the store of releases", self._forks)
        self._id = secrets.token_hex(4)
        self._view = InstanceView(self._id, settings, self._workers, self._watcher, self._mirror, self._hang)
        self.last_resort = LastResort()

    def prepare(self) -> None:
        """Makes the checks that need no event loop, and starts the fork server, which needs a process without threads.

        Raises:
            StartError: if a Redis URL or an extra is missing.
        """
        log_unused()
        settings = self._settings
        owner.embedded_roles(settings)  # first, so that a missing URL is reported before any other problem
        problem = tracing.missing() if settings.traces > 0 else None
        if problem is not None:
            raise StartError(f"FORECAST_TRACES: {problem}")
        self._forks.begin(self._import_all)
        if settings.releases_url is not None:
            self._check_releases_url()

    async def run(self) -> None:
        """Serves until one of `stop_signals`; a second one but SIGHUP stops at once. Call `prepare` before.

        Raises:
            StartError: if a port is taken, the data folder cannot be written, or a Redis URL is wrong.
        """
        settings = self._settings
        async with contextlib.AsyncExitStack() as stack:
            self._partners = stack.enter_context(bind(settings.listen_host, settings.listen_port, "listen_port"))
            self._operators = stack.enter_context(bind(settings.operator_host, settings.operator_port, "operator_port"))
            self._servers = self._start_embedded()
            stack.push_async_callback(asyncio.to_thread, self._servers.stop)  # the loop still handles signals
            self._orders = await self._make_orders()
            self._instance = self._open_instance()
            stack.callback(returned_within, _CLOSE_SECONDS, self._instance.close)
            await self._serve()

    def _import_all(self) -> None:
        importlib.import_module("service.worker.serving").preload()
        if self._settings.inbox is not None or self._settings.releases_url is not None:
            importlib.import_module(MAIN)

    def close(self) -> None:
        """Ends the fork server. Call last."""
        self._forks.close()
        self.last_resort.cancel()

    def _check_releases_url(self) -> None:
        """Checks the URL without the store. An instance serves even if the store is unreachable; `state` reports it."""
        try:
            open_releases(self._settings)
        except StoreError as error:
            raise StartError(f"FORECAST_RELEASES_URL: {error}") from None

    def _start_embedded(self) -> EmbeddedServers:
        servers = EmbeddedServers(self._settings.data_path, owner.embedded_roles(self._settings))
        try:
            servers.ensure()
        except EmbeddedError as error:
            servers.stop()
            raise StartError(str(error)) from None
        return servers

    async def _make_orders(self) -> Orders:
        urls = owner.resolve_urls(self._settings, self._servers)
        for role, url in urls.items():
            problem = await check_answers_redis(url, for_keys=role == "keys")
            if problem is not None:
                raise StartError(f"FORECAST_{role.upper()}_URL: {problem}")
        configured, folder = self._settings.keys_pepper, self._settings.data_path
        if pepper.is_lost(configured, folder):
            log.error("%s", pepper.LOST.format(pepper.file_of(folder)))
        secret = pepper.obtain(configured, folder)
        endpoints = Endpoints(urls["keys"], urls["cache"], secret)
        return Orders(self._settings, endpoints, self._log_json)

    def _open_instance(self) -> InstanceFile:
        try:
            return InstanceFile(self._settings.data_path, self._id)
        except OSError as error:
            raise StartError(unwritable(self._settings.data_path, error)) from None

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        for number in stop_signals():
            loop.add_signal_handler(number, self._handle_stop, number)
        endpoints = self._orders.endpoints
        view = self._view
        backend = KeyBackend(self._settings, endpoints.keys_url, endpoints.cache_url, endpoints.pepper)
        changes = Actions(self._settings, backend, view.purge, view.events.add)
        self._listener = OperatorsListener(self._settings, self._operators, changes)
        self._peers = self._make_peers(endpoints.keys_url)
        await self._view.start(endpoints, self._peers, self._servers, self._operators_url)
        self._listener.start(self._view)
        await self._peers.start()
        self._workers.start(self._orders, self._partners)
        self._share()
        self._stand_in.start(self._partners)
        tending = (
            asyncio.create_task(self._report_ready(), name="report that the instance is ready"),
            keep_running("tend", self._tend),
            keep_running("keep the instance record", self._keep_record),
        )
        orders = partial(KeptOrders, settings=self._settings, log_json=self._log_json, instance=self._instance.name)
        if self._settings.inbox is not None:
            self._watcher.start(orders(task="inbox"))
        if self._settings.releases_url is not None:
            self._mirror.start(orders(task="mirror"))
        await self._stopping.wait()
        drained = loop.time() + self._settings.drain
        ends = (self._watcher.stop(), self._mirror.stop(), self._stand_in.stop())
        await asyncio.gather(*ends, self._workers.stop(self._settings.drain))
        await asyncio.gather(*(end_task(task) for task in tending), self._peers.stop())
        left = 0.0 if self._stops_at_once else max(_OPERATORS_SECONDS, drained - loop.time())
        await asyncio.gather(self._listener.stop(left), self._view.stop(), return_exceptions=True)

    def _make_peers(self, keys_url: str) -> Peers:
        primary = Primary(keys_url)
        store = open_store("key store", primary, timeout=_PEERS_SECONDS)
        me = Peer(self._id, socket.gethostname(), self._operators_url, self._workers.wanted)
        return Peers(store, me, self._workers.purge, self._share, self._view.events.add, primary)

    @property
    def _operators_url(self) -> str:
        return self._settings.advertise_url or url_of(self._operators)

    def _handle_stop(self, number: int) -> None:
        if not self._view.draining:
            log.info("stopping (%s): requests under way have %g s", signal.Signals(number).name, self._settings.drain)
            self._view.draining = True
            self._stopping.set()
        elif number != signal.SIGHUP:  # a closing terminal sends SIGHUP twice: the shell, then the kernel
            log.warning("second signal: stopping now")
            self._stop_at_once()

    def _stop_at_once(self) -> None:
        self._stops_at_once = True
        self.last_resort.start()
        self._watcher.signal(signal.SIGKILL)
        self._mirror.signal(signal.SIGKILL)
        self._workers.kill()
        self._listener.stop_at_once()
        self._servers.kill()

    async def _report_ready(self) -> None:
        await self._workers.wait_until_ready()
        if self._on_ready is not None:
            try:
                self._on_ready(url_of(self._partners), url_of(self._operators))
            except OSError as error:  # the instance still serves; the command reports the failure when it ends
                log.error("cannot print the addresses: %s: %s", error.filename, error.strerror)

    # --- watching ------------------------------------------------------------------------------------------------

    async def _tend(self) -> float:
        """Replaces dead embedded servers."""
        if self._stops_at_once:
            return _TEND_SECONDS
        if not self._servers.owned:  # in a thread, because it touches the data folder
            with contextlib.suppress(FilesHang):  # `state` reports it
                await self._locks.run("locking embedded.lock", self._servers.claim, wait=_TEND_SECONDS)
        if self._servers.owned:
            self._servers.tend()
            await self._view.look_at_disk()
        return _TEND_SECONDS

    async def _keep_record(self) -> float:
        """Writes the instance's record after each change of the releases that its workers serve."""
        with contextlib.suppress(FilesHang):  # `state` reports it
            await self._write_record()
        self._changed.clear()
        await wait_until_set(self._changed, _TEND_SECONDS)
        return 0.0

    async def _write_record(self) -> None:
        record = InstanceRecord(
            instance=self._id,
            pid=os.getpid(),
            host=socket.gethostname(),
            operator_url=self._operators_url,
            releases=tuple(worker.report.release for worker in self._workers.all if worker.report is not None),
            formats=RELEASE_FORMAT,
            cache=address(self._settings.cache_url),
        )
        if record != self._written:
            try:
                what = f"writing {self._instance.record}"
                await self._records.run(what, self._instance.write, record, wait=1)
            except OSError as error:
                if str(error) != self._unwritten:  # tried four times a second, logged once
                    log.error("cannot write the instance record: %s", error)
                self._unwritten = str(error)
                return
            self._written, self._unwritten = record, None

    def _share(self) -> None:
        """Sends the workers the total number of workers and the store's time."""
        others = sum(peer.workers for peer in self._peers.others)
        self._workers.share(Shared(self._workers.wanted + others, self._peers.clock.base))

    def _hang(self) -> str | None:
        hang = self._records.hang or self._locks.hang
        return str(hang) if hang is not None else None


def serve(settings: Settings, *, log_json: bool, on_ready: Callable[[str, str], None] | None = None) -> None:
    """Runs an instance until a stop signal. Raises StartError."""
    supervisor = Supervisor(settings, log_json=log_json, on_ready=on_ready)

    async def run() -> None:
        try:
            await supervisor.run()
        finally:
            supervisor.last_resort.start()

    try:
        supervisor.prepare()
        uvloop.run(run())
    except CatalogError as error:
        raise StartError(str(error)) from None
    finally:
        supervisor.close()
