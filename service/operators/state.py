"""What the supervisor knows about its instance, and the readiness that follows from it (Decision 12)."""

from typing import Literal

import msgspec

from config.durations import in_words
from service.base.messages import WorkerReport
from service.publishing.inbox_status import Status


class WorkerState(msgspec.Struct, frozen=True):
    """One worker at the moment of an `InstanceState`."""

    pid: int
    report: WorkerReport | None  # the newest; None until the worker serves
    resident_bytes: int


class InstanceState(msgspec.Struct, frozen=True, kw_only=True):
    """An instance at one moment: made by the supervisor for each request that asks for health or metrics."""

    workers: tuple[WorkerState, ...]
    wanted_workers: int
    restarts: int  # workers replaced since the instance started
    draining: bool
    files_hang: str | None = None  # the supervisor's own access to the data folder that hangs
    inbox: Status = Status()  # of all watchers on the data folder
    inbox_problem: str | None = None  # what keeps this instance's watcher from working
    store_problems: tuple[str, ...] = ()  # how the two Redis are configured wrongly
    last_drop_age: float | None = None  # seconds since a drop was delivered; None before the first
    drop_every: float | None = None  # seconds from one drop to the next, at most; None: there is no rhythm

    @property
    def reports(self) -> list[WorkerReport]:
        return [worker.report for worker in self.workers if worker.report is not None]

    @property
    def drop_overdue(self) -> float:
        """By how many seconds the next drop is overdue; 0 if it is not."""
        if self.last_drop_age is None or self.drop_every is None:
            return 0.0
        return max(0.0, self.last_drop_age - self.drop_every)


class Health(msgspec.Struct, frozen=True):
    """The body of /health/ready for a caller without a token."""

    status: Literal["ready", "degraded", "unavailable"]  # unavailable: a balancer should send nothing


class Readiness(Health, frozen=True):
    """The body of /health/ready for a caller that may read."""

    reasons: tuple[str, ...]  # for the operator; empty if ready
    releases: tuple[str, ...]  # ids that workers serve


def readiness(state: InstanceState) -> Readiness:
    reports = state.reports
    releases = tuple(sorted({report.release for report in reports if report.release}))
    blocking = _blocking(state, reports)
    if blocking:
        return Readiness("unavailable", (blocking,), releases)
    reasons = _degraded(state, reports)
    return Readiness("degraded" if reasons else "ready", tuple(reasons), releases)


def _blocking(state: InstanceState, reports: list[WorkerReport]) -> str | None:
    if state.draining:
        return "draining"
    if not reports:
        return "starting"
    if not any(report.release for report in reports):
        problem = next(filter(None, (report.release_problem or report.hung for report in reports)), None)
        return f"no release: {problem}" if problem else "no release has been published yet"
    if not any(report.can_answer for report in reports):
        problem = next((report.release_problem for report in reports if report.release_problem), "they fail")
        return f"no look-up works and nothing is cached: {problem}"
    if not any(report.can_verify for report in reports):
        problem = next((report.keys_problem for report in reports if report.keys_problem), None)
        return problem or "the key store is away, and no worker remembers a verified key"
    return None


def _degraded(state: InstanceState, reports: list[WorkerReport]) -> list[str]:
    reasons = []
    if not all(report.keys_up for report in reports):
        reasons.append(
            "the key store is away: each worker accepts keys that it verified in the last 60 s; others get a 503"
        )
    if not all(report.cache_up for report in reports):
        reasons.append("the shared cache is away: answers come from the warehouse")
    reasons += sorted({f"the shared cache: {report.cache_refusal}" for report in reports if report.cache_refusal})
    reasons += state.store_problems
    reasons += sorted({report.release_problem for report in reports if report.release_problem})
    reasons += sorted({*(report.hung for report in reports if report.hung), *filter(None, [state.files_hang])})
    reasons += sorted({report.keys_problem for report in reports if report.keys_problem})
    if any(report.push_refused for report in reports):
        reasons.append("revocations are not pushed and take up to 5 s: the key store refuses CLIENT TRACKING")
    reasons += sorted({report.usage_problem for report in reports if report.usage_problem})
    if len(reports) < state.wanted_workers:
        reasons.append(f"{len(reports)} of {state.wanted_workers} workers serve")
    if state.inbox_problem is not None:
        reasons.append(f"drops are not published: {state.inbox_problem}")
    if state.inbox.held:
        reasons.append(_held(state.inbox))
    if state.drop_overdue:
        reasons.append(_overdue(state))
    return reasons


def _held(inbox: Status) -> str:
    drops = "1 drop waits" if inbox.held == 1 else f"{inbox.held} drops wait"
    return f"{drops} for approval, for up to {in_words(inbox.held_age())}: `forecast extracts held` lists them"


def _overdue(state: InstanceState) -> str:
    last, every = in_words(state.last_drop_age or 0), in_words(state.drop_every or 0)
    return (
        f"the next drop is overdue by {in_words(state.drop_overdue)}: the last one came {last} ago, and "
        f"FORECAST_DROP_EVERY is {every}"
    )
