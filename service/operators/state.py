"""The supervisor's view of its instance. reasons.py has the readiness that follows from it."""

from typing import Literal

import msgspec

from service.base.ipc import WorkerReport
from service.inbox.status import Status as InboxStatus
from service.operators.overview import Keys, Store

# of an instance; unavailable: balancers should send it no requests
Status = Literal["ready", "degraded", "unavailable"]
# The kinds of problems, each with its runbook (next_steps.py).
Kind = Literal[
    "stopping", "starting", "unpublished", "release", "hang", "silent", "connections", "workers", "restarts", "errors",
    "keys", "cache", "cache-refuses", "store", "foreign-keys", "went-back", "push", "usage",
    "clock", "mirror", "inbox", "held", "overdue",
]  # fmt: skip


class WorkerState(msgspec.Struct, frozen=True):
    """One worker at the moment of an `InstanceState`."""

    pid: int
    report: WorkerReport | None  # the newest; None until the worker serves
    resident_bytes: int
    started_at: float = 0.0  # Unix seconds
    leaving: bool = False  # it is stopping
    responds: bool = True  # False: it seems to hang, and its report is old

    @property
    def state(self) -> Literal["starting", "serving", "hanging", "leaving"]:
        if self.leaving:
            return "leaving"
        if not self.responds:
            return "hanging"
        if self.report is None:
            return "starting"
        return "hanging" if self.report.hung is not None else "serving"


class InstanceState(msgspec.Struct, frozen=True, kw_only=True):
    """An instance at one moment. The supervisor builds it for each request for health or metrics."""

    workers: tuple[WorkerState, ...]
    wanted_workers: int
    restarts: int  # workers replaced since the instance started
    start_problem: str | None = None  # why the last worker that failed to start ended
    draining: bool
    restarted: tuple[str, ...] = ()  # processes restarted in the last minute
    files_hang: str | None = None  # the supervisor's own access to the data folder that hangs
    inbox: InboxStatus = InboxStatus()  # of all watchers on the data folder
    inbox_problem: str | None = None  # why this instance's watcher does not work
    mirror_problem: str | None = None  # why the data folder differs from the store of releases
    store_problems: tuple[str, ...] = ()  # wrong configuration of the two Redis
    keys_went_back: str | None = None  # changes that the key store lost, according to its audit trail
    last_drop_age: float | None = None  # seconds since a drop was delivered; None before the first
    drop_every: float | None = None  # most seconds between two drops; None: not set
    last_drop_at: float | None = None  # Unix seconds
    watches_inbox: bool = False
    releases: tuple[str, ...] = ()  # ids of those in the data folder, newest first
    switched_by: str | None = None  # who made the served release current, if known
    disk_free: int | None = None  # bytes; None while unknown
    disk_size: int | None = None
    stores: tuple[Store, ...] = ()  # as of the last check of each
    keys: Keys = Keys()
    all_workers: int = 0  # of all known instances
    clock_ahead: float | None = None  # seconds by which this machine's clock is ahead of the key store's, if known
    lookup_queue: int = 0  # look-ups that may wait in one worker
    runbooks: str = ""  # URL of the folder with their pages

    @property
    def reports(self) -> list[WorkerReport]:
        """The reports of the workers that serve."""
        return [worker.report for worker in self.workers if worker.report is not None and worker.responds]

    @property
    def served(self) -> str | None:
        """The release that all workers serve; None while they differ or have none."""
        releases = {report.release for report in self.reports}
        return releases.pop() if len(releases) == 1 else None

    @property
    def drop_overdue(self) -> float:
        """Seconds by which the next drop is overdue; 0 if it is not."""
        if self.last_drop_age is None or self.drop_every is None:
            return 0.0
        return max(0.0, self.last_drop_age - self.drop_every)
