"""The supervisor's view of its instance, and the readiness that follows from it (Decision 12)."""

import time
from collections.abc import Iterator
from typing import Literal

import msgspec

from config.text import in_words
from service.base.ipc import WorkerReport
from service.inbox.status import Status as InboxStatus
from service.operators.overview import Keys, Store

# Most nodes of a cluster that one message lists.
_SHOWN_NODES = 5

# of an instance; unavailable: balancers should send it no requests
Status = Literal["ready", "degraded", "unavailable"]


# Largest difference to the key store's clock that is not a problem.
CLOCK_SECONDS = 5.0


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


class Health(msgspec.Struct, frozen=True):
    """The body of /health/ready for a caller without a token."""

    status: Status  # unavailable: balancers should send no requests


class Readiness(Health, frozen=True):
    """The body of /health/ready for a caller that may read."""

    reasons: tuple[str, ...]  # for the operator; empty if ready
    releases: tuple[str, ...]  # ids that workers serve


class InstanceProblem(msgspec.Struct, frozen=True):
    """A problem of the instance. `kind` stays the same while figures in the text change."""

    kind: str
    text: str
    since: float | None = None  # Unix seconds, if known


def readiness(state: InstanceState) -> Readiness:
    releases = tuple(sorted({report.release for report in state.reports if report.release}))
    status, problems = problems_of(state)
    return Readiness(status, tuple(problem.text for problem in problems), releases)


def problems_of(state: InstanceState) -> tuple[Status, list[InstanceProblem]]:
    """Returns the status and its reasons."""
    blocking = _blocking(state, state.reports)
    if blocking:
        return "unavailable", [InstanceProblem("blocking", blocking)]
    problems = [
        *_worker_problems(state, state.reports),
        *_store_problems(state, state.reports),
        *_clock_problems(state),
        *_drop_problems(state),
    ]
    return "degraded" if problems else "ready", problems


def _blocking(state: InstanceState, reports: list[WorkerReport]) -> str | None:
    if state.draining:
        return "draining"
    if not reports:
        if state.start_problem is not None:
            return f"no worker can start: {state.start_problem}"
        return ", ".join(_unresponsive(state)) or "starting"
    if not any(report.release for report in reports):
        causes = (*(report.release_problem or report.hung for report in reports), state.mirror_problem)
        problem = next(filter(None, causes), None)
        return f"no release: {problem}" if problem else "no release has been published yet"
    if not any(report.can_answer for report in reports):
        problem = next((report.release_problem for report in reports if report.release_problem), "they fail")
        return f"no look-up works and nothing is cached: {problem}"
    if not any(report.can_verify for report in reports):
        problem = next((report.keys_problem for report in reports if report.keys_problem), None)
        why = f": {'; '.join(state.store_problems)}" if state.store_problems else ""
        return problem or f"the key store is unreachable, and no worker has a verified key cached{why}"
    return None


def _store_problems(state: InstanceState, reports: list[WorkerReport]) -> Iterator[InstanceProblem]:
    if not all(report.keys_up for report in reports):
        yield InstanceProblem(
            "keys",
            "the key store is unreachable: workers accept keys that they verified in the last 60 s; others get a 503",
        )
    unreachable = sorted({node for report in reports for node in report.cache_away})
    if unreachable:
        more = f" and {len(unreachable) - _SHOWN_NODES} more" if len(unreachable) > _SHOWN_NODES else ""
        which = f"{', '.join(unreachable[:_SHOWN_NODES])}{more}"
        yield InstanceProblem("cache", f"a part of the shared cache is unreachable ({which}), so DuckDB answers for it")
    elif not all(report.cache_up for report in reports):
        yield InstanceProblem("cache", "the shared cache is unreachable, so DuckDB answers")
    for refusal in sorted({report.cache_refusal for report in reports if report.cache_refusal}):
        yield InstanceProblem("cache-refuses", f"the shared cache: {refusal}")
    for problem in state.store_problems:
        yield InstanceProblem(problem, problem)
    for text in sorted({report.keys_problem for report in reports if report.keys_problem}):
        yield InstanceProblem("foreign-keys", text)
    for text in sorted(went_back(state)):
        yield InstanceProblem("went-back", text)
    if any(report.push_refused for report in reports):
        yield InstanceProblem(
            "push", "revocations are not pushed and take up to 5 s: the key store refuses CLIENT TRACKING"
        )
    for text in sorted({report.usage_problem for report in reports if report.usage_problem}):
        yield InstanceProblem("usage", text)


def went_back(state: InstanceState) -> set[str]:
    """Returns the losses of the key store that workers and the audit trail report."""
    return set(filter(None, (state.keys_went_back, *(report.keys_went_back for report in state.reports))))


def _worker_problems(state: InstanceState, reports: list[WorkerReport]) -> Iterator[InstanceProblem]:
    for kind, found in (
        ("release", {report.release_problem for report in reports}),
        ("hang", {*(report.hung for report in reports), state.files_hang}),
    ):
        for text in sorted(filter(None, found)):
            yield InstanceProblem(kind, text)
    for text in _unresponsive(state):
        yield InstanceProblem(text, text)
    full = [report.connections_limit for report in reports if report.connections > report.connections_limit > 0]
    if full:
        many = f"{len(full)} of {len(reports)} workers serve {full[0]:,} connections each, the most that are allowed"
        files = max(report.files_limit for report in reports)
        why = f"with {files:,} open files (ulimit -n, LimitNOFILE)" if files else "(FORECAST_CONNECTIONS)"
        yield InstanceProblem("connections", f"{many} {why}: requests on further connections get a 503")
    if len(reports) < state.wanted_workers:
        why = f": the last new worker ended ({state.start_problem})" if state.start_problem is not None else ""
        yield InstanceProblem("workers", f"{len(reports)} of {state.wanted_workers} workers serve{why}")


def _clock_problems(state: InstanceState) -> Iterator[InstanceProblem]:
    ahead = state.clock_ahead
    if ahead is not None and abs(ahead) > CLOCK_SECONDS:
        which = "ahead of" if ahead > 0 else "behind"
        text = f"this machine's clock is {in_words(round(abs(ahead)))} {which} the key store's"
        yield InstanceProblem("clock", f"{text}: days and expiry follow the latter")


def _drop_problems(state: InstanceState) -> Iterator[InstanceProblem]:
    if state.mirror_problem is not None:
        yield InstanceProblem("releases", f"releases are not mirrored: {state.mirror_problem}")
    if state.inbox_problem is not None:
        yield InstanceProblem("inbox", f"drops are not published: {state.inbox_problem}")
    if state.inbox.held:
        yield InstanceProblem("held", _held(state.inbox), state.inbox.held_since)
    if state.drop_overdue:
        yield InstanceProblem("overdue", _overdue(state), time.time() - state.drop_overdue)


def _unresponsive(state: InstanceState) -> list[str]:
    return [f"worker {worker.pid} does not respond" for worker in state.workers if not worker.responds]


def _held(inbox: InboxStatus) -> str:
    drops = "1 drop waits" if inbox.held == 1 else f"{inbox.held} drops wait"
    return f"{drops} for approval, for up to {in_words(inbox.held_age())}: `forecast extracts held` lists them"


def _overdue(state: InstanceState) -> str:
    last, every = in_words(state.last_drop_age or 0), in_words(state.drop_every or 0)
    return (
        f"the next drop is overdue by {in_words(state.drop_overdue)}: the last one came {last} ago, and "
        f"FORECAST_DROP_EVERY is {every}"
    )
