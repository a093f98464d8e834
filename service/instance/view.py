"""Gathers the state of an instance for operators: its workers, stores, watcher and data folder."""

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from config.settings import Settings
from service.base import tasks
from service.base.ipc import AccessLogEntry, Endpoints
from service.base.tasks import end_task, keep_running
from service.base.telemetry import TASK_FAILURES, Snapshot, Telemetry
from service.cache.removing import purge_shared
from service.embedded.owner import EmbeddedServers
from service.inbox.status import Status, read_fresh_status
from service.instance.kept_process import KeptProcess
from service.instance.peers import Peers
from service.instance.store_checks import StoreChecks
from service.instance.worker_process import WorkerProcess
from service.instance.workers import Workers
from service.operators.actions import Purged
from service.operators.history import Span
from service.operators.kept import SAVE_SECONDS, kept_file, log_unusable, read_kept, write_kept
from service.operators.live import Broadcast, Rounds
from service.operators.next_steps import OWN_RUNBOOKS, Installation, NextSteps
from service.operators.observer import Observer
from service.operators.overview import History, Overview
from service.operators.state import InstanceState, WorkerState
from warehouse.files.file_access import FileAccess
from warehouse.releases.catalog import Catalog
from warehouse.releases.deliveries import last_delivery
from warehouse.schema.errors import CatalogError, FilesHang

_LOOK_SECONDS = 1.0
# Maximum wait for a fresh overview: the data folder may hang.
_FRESH_SECONDS = 0.5
# Threads for accesses to the data folder that may never return: a supervisor is not replaced.
_FILE_THREADS = 4

_RELEASES = 10
_PARTNERS_IN_METRICS = 50


class FolderNews(msgspec.Struct, frozen=True, kw_only=True):
    """One reading of the data folder."""

    inbox: Status = Status()  # of all watchers on the data folder
    delivered: datetime | None = None  # time of the last drop; None before the first
    releases: tuple[str, ...] = ()  # ids of the newest releases, newest first
    disk_free: int | None = None  # bytes
    disk_size: int | None = None

    def last_drop_age(self) -> float | None:
        """Seconds since the last drop was delivered."""
        return None if self.delivered is None else max(0.0, time.time() - self.delivered.timestamp())


def read_folder_news(data: Path) -> FolderNews:
    """Reads the data folder. An unreadable folder counts as empty; the workers report it."""
    delivered = free = size = None
    releases: tuple[str, ...] = ()
    with suppress(OSError):
        delivered = last_delivery(data)
    with suppress(OSError):
        releases = tuple(Catalog(data).names()[:_RELEASES])
    with suppress(OSError):
        found = os.statvfs(data)
        free, size = found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
    status = read_fresh_status(data)
    return FolderNews(inbox=status, delivered=delivered, releases=releases, disk_free=free, disk_size=size)


class InstanceView:
    """The view of one instance, owned by its supervisor. `hang` describes the supervisor's own hanging file access."""

    def __init__(
        self,
        instance: str,
        settings: Settings,
        workers: Workers,
        watcher: KeptProcess,
        mirror: KeptProcess,
        hang: Callable[[], str | None],
    ) -> None:
        self.draining = False
        self.observer = Observer(instance, str(settings.data_path.absolute()))
        self.events = self.observer.events
        self.broadcast = Broadcast(self.overview)
        self._settings = settings
        self._workers = workers
        self._watcher = watcher
        self._mirror = mirror
        self._hang = hang
        self._files = FileAccess(_FILE_THREADS)
        self._disk = FileAccess(_FILE_THREADS)
        self._disk_looks = Rounds(self._look_at_disk)
        self._reading = asyncio.Lock()
        self._looks = Rounds(self._look)
        self._news = FolderNews()
        self._kept = kept_file(settings.data_path, settings.operator_port)
        self._served: str | None = None  # the release that all workers served last
        self._switched_by: str | None = None  # the operator who made it current

    async def start(self, endpoints: Endpoints, peers: Peers, servers: EmbeddedServers, listener_url: str) -> None:
        self._peers, self._servers = peers, servers
        self._cache_url = endpoints.cache_url
        self._runbooks = self._settings.runbook_url or f"{listener_url}/{OWN_RUNBOOKS}"
        self._checks = StoreChecks(endpoints, self._settings.data_path, self.events.add)
        await self._checks.start()
        self._workers.on_samples = self.observer.board.add
        self._workers.on_end = lambda text: self.events.add("worker", text)
        steps = NextSteps(self._settings, endpoints, Installation.found(os.environ))
        self.observer.verdicts.next_step = steps.find
        await self._restore()
        self._looking = keep_running("look at the instance", self._keep_looking)
        self._saving = keep_running("save the history", self._save)

    async def stop(self) -> None:
        await asyncio.gather(
            end_task(self._looking), end_task(self._saving), self._save(), self._checks.stop(), return_exceptions=True
        )

    def state(self) -> InstanceState:
        news, settings = self._news, self._settings
        workers = tuple(worker_state(worker) for worker in self._workers.all)
        reports = [worker.report for worker in workers if worker.report is not None and worker.responds]
        return InstanceState(
            workers=workers,
            wanted_workers=self._workers.wanted,
            restarts=self._workers.restarts,
            start_problem=self._workers.start_problem,
            draining=self.draining,
            files_hang=self._hang() or next((str(one.hang) for one in (self._files, self._disk) if one.hang), None),
            inbox=news.inbox,
            inbox_problem=self._watcher.problem,
            mirror_problem=self._mirror.problem,
            store_problems=tuple(dict.fromkeys([*self._servers.problems(), *self._checks.problems])),
            restarted=self._restarted(),
            keys_went_back=self._checks.trail.problem,
            last_drop_age=news.last_drop_age(),
            drop_every=settings.drop_every,
            last_drop_at=news.delivered.timestamp() if news.delivered is not None else None,
            watches_inbox=settings.inbox is not None,
            releases=news.releases,
            switched_by=self._switched_by,
            disk_free=news.disk_free,
            disk_size=news.disk_size,
            stores=self._checks.stores(reports),
            keys=self._checks.keys,
            all_workers=self._workers.everywhere,
            clock_ahead=self._peers.clock.ahead,
            lookup_queue=settings.lookup_queue,
            runbooks=self._runbooks,
        )

    async def look_at_disk(self) -> None:
        """Lets the embedded key store reserve space, and notices a full disk.

        A check that began before this call does not count: the disk may have become full since.
        """
        await self._disk_looks.get()

    async def _look_at_disk(self) -> None:
        if self._servers.owned:
            with suppress(FilesHang):  # `state` reports it
                await self._disk.run(
                    f"reserving space in {self._settings.data_path}", self._servers.look_at_disk, wait=1
                )

    def _restarted(self) -> tuple[str, ...]:
        workers = self._workers.recent.recent_count(time.monotonic())
        servers = (f"the embedded server for {role}" for role in self._servers.restarted())
        ended = [f"{workers} of the workers ({self._workers.last_end})"] if workers else []
        return (*ended, *servers)

    async def sums(self) -> Snapshot:
        """Returns the current figures of all workers, past ones included. Refreshes the figures of drops in `state`."""
        await asyncio.gather(self._read_folder(), *(worker.fresh_report() for worker in self._workers.all))
        total = Telemetry()
        total.add(self._workers.retired.snapshot())
        for task, failures in tasks.failures.items():
            total.count(TASK_FAILURES, task, amount=failures)
        for worker in self._workers.all:
            if worker.report is not None:
                total.add(worker.report.telemetry)
        return total.snapshot()

    def overview(self) -> Overview | None:
        return self.observer.overview()

    async def overview_now(self) -> Overview | None:
        """Returns the overview, refreshed: a publish waits for workers, and its operator reads it right after."""
        if self.overview() is not None:
            with suppress(Exception):  # the regular refresh reports the failure
                await asyncio.wait_for(self._looks.get(), _FRESH_SECONDS)
        return self.overview()

    def history(self, span: Span) -> History:
        return self.observer.history(span)

    def partner_totals(self) -> list[tuple[str, Mapping[int, int]]]:
        return self.observer.board.totals(_PARTNERS_IN_METRICS) if self._settings.partner_metrics else []

    async def find(self, request_id: str) -> list[AccessLogEntry]:
        """Returns the workers' log entries of a request, oldest first."""
        found = await asyncio.gather(*(worker.find(request_id) for worker in self._workers.all))
        return sorted((request for requests in found for request in requests), key=lambda request: request.time)

    def sample(self, share: float) -> None:
        self._workers.sample(share)

    async def purge(self) -> Purged:
        """Empties the shared cache, then the near caches of all instances on the key store. The other order would let
        the shared cache fill the near ones again.

        Raises:
            StoreUnavailable: if either store does not answer. The near caches of this instance are empty even then, and
                those of the others if the key store answers.
        """
        near = sum(worker.report.near_entries for worker in self._workers.all if worker.report is not None)
        try:
            shared = await purge_shared(self._cache_url)
        finally:
            await self._workers.purge()
            done, behind = await self._peers.order_purge()
        return Purged(near, shared, done, behind)

    async def _keep_looking(self) -> float:
        """Refreshes the state; returns the seconds until the next call."""
        await self._looks.get()
        self.broadcast.publish()  # not in `_look`: whoever asks for the overview must not hurry the streams
        return _LOOK_SECONDS

    async def _look(self) -> None:
        """Refreshes the state."""
        await self._read_folder()
        await self._read_who_switched()
        for worker in self._workers.all:
            if worker.report is not None:
                self._checks.trail.revoke_again(worker.report.revoked_lost)
        self.observer.look(self.state(), self._workers.retired.snapshot())

    async def _restore(self) -> None:
        with suppress(FilesHang):  # `state` reports it
            kept = await self._files.run(f"reading {self._kept}", read_kept, self._kept, wait=1)
            try:
                if kept is not None:
                    self.observer.restore(kept)
            except ValueError as error:
                log_unusable(self._kept, error)

    async def _save(self) -> float:
        """Saves what the instance remembers; returns the seconds until the next time."""
        with suppress(FilesHang, OSError):  # a full disk: `state` reports it
            await self._files.run(f"writing {self._kept}", write_kept, self._kept, self.observer.keep(), wait=1)
        return SAVE_SECONDS

    async def _read_folder(self) -> None:
        folder = self._settings.data_path
        async with self._reading:
            with suppress(FilesHang):  # `state` reports it
                self._news = await self._files.run(f"reading {folder}", read_folder_news, folder, wait=1)

    async def _read_who_switched(self) -> None:
        """Reads who made a release current, once all workers serve it."""
        release, before, folder = self.state().served, self._served, self._settings.data_path
        if release is None or release == before:
            return
        self._served, self._switched_by = release, None
        if before is not None:
            with suppress(FilesHang, CatalogError, OSError):  # then it is unknown
                pointer = await self._files.run(f"reading {folder}/current.json", Catalog(folder).pointer, wait=1)
                self._switched_by = pointer.by if pointer is not None and pointer.release == release else None


def worker_state(worker: WorkerProcess) -> WorkerState:
    return WorkerState(
        worker.pid,
        worker.report,
        worker.resident_bytes(),
        worker.started_at,
        worker.leaving,
        responds=not worker.silence.is_long,
    )
