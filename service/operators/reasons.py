"""The status of an instance and the reasons for it, as sentences: what happened, what it means for partners, what to do
(Decision 12).
"""

import time
from collections.abc import Iterable, Iterator

import msgspec

from config.text import in_words
from service.base.ipc import WorkerReport
from service.inbox.status import Status as InboxStatus
from service.operators.state import InstanceState, Kind, Status

# Most nodes of a cluster that one message lists.
_SHOWN_NODES = 5
# Largest difference to the key store's clock that is not a problem.
CLOCK_SECONDS = 5.0


class InstanceProblem(msgspec.Struct, frozen=True):
    """A problem of the instance. `kind` and `name` stay the same while figures in the text change."""

    kind: Kind
    text: str
    name: str = ""  # distinguishes problems of one kind
    since: float | None = None  # Unix seconds, if known


class Health(msgspec.Struct, frozen=True):
    """The body of /health/ready for a caller without a token."""

    status: Status  # unavailable: balancers should send no requests


class Readiness(Health, frozen=True):
    """The body of /health/ready for a caller that may read."""

    reasons: tuple[str, ...]  # for the operator; empty if ready
    releases: tuple[str, ...]  # ids that workers serve


def readiness(state: InstanceState) -> Readiness:
    releases = tuple(sorted({report.release for report in state.reports if report.release}))
    status, problems = problems_of(state)
    return Readiness(status, tuple(problem.text for problem in problems), releases)


def problems_of(state: InstanceState) -> tuple[Status, list[InstanceProblem]]:
    """Returns the status and its reasons."""
    blocking = _blocking(state, state.reports)
    if blocking is not None:
        return "unavailable", [blocking]
    problems = [
        *_worker_problems(state, state.reports),
        *_store_problems(state, state.reports),
        *_clock_problems(state),
        *_drop_problems(state),
    ]
    return "degraded" if problems else "ready", problems


def sentence(text: str) -> str:
    """Returns `text` as a sentence."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def went_back(state: InstanceState) -> set[str]:
    """Returns the losses of the key store that workers and the audit trail report."""
    return set(filter(None, (state.keys_went_back, *(report.keys_went_back for report in state.reports))))


def _blocking(state: InstanceState, reports: list[WorkerReport]) -> InstanceProblem | None:
    if state.draining:
        return InstanceProblem("stopping", "The instance is stopping.")
    if not reports:
        if state.start_problem is not None:
            return InstanceProblem("workers", sentence(f"No worker can start: {state.start_problem}"))
        silent = " ".join(problem.text for problem in _unresponsive(state))
        return InstanceProblem("silent", silent) if silent else InstanceProblem("starting", "The instance is starting.")
    if not any(report.release for report in reports):
        causes = (*(report.release_problem or report.hung for report in reports), state.mirror_problem)
        problem = next(filter(None, causes), None)
        if problem is None:
            return InstanceProblem("unpublished", "No release has been published yet. Publish a drop.")
        return InstanceProblem("release", sentence(f"No worker can open a release: {problem}"))
    if not any(report.can_answer for report in reports):
        problem = next((report.release_problem for report in reports if report.release_problem), "they fail")
        return InstanceProblem("release", sentence(f"No look-up works, and no answer is cached: {problem}"))
    if not any(report.can_verify for report in reports):
        problem = next((report.keys_problem for report in reports if report.keys_problem), None)
        if problem is not None:
            return InstanceProblem("foreign-keys", sentence(problem))
        text = "The key store is unreachable, and no worker remembers a verified key."
        return InstanceProblem("keys", " ".join((text, *state.store_problems)))
    return None


def _store_problems(state: InstanceState, reports: list[WorkerReport]) -> Iterator[InstanceProblem]:
    if not all(report.keys_up for report in reports):
        text = (
            "The key store is unreachable. Workers accept keys that they verified in the last 60 s; others get a 503."
        )
        yield InstanceProblem("keys", text)
    unreachable = sorted({node for report in reports for node in report.cache_away})
    if unreachable:
        more = f" and {len(unreachable) - _SHOWN_NODES} more" if len(unreachable) > _SHOWN_NODES else ""
        which = f"{', '.join(unreachable[:_SHOWN_NODES])}{more}"
        text = f"A part of the shared cache is unreachable ({which}). DuckDB answers for it; nothing is lost."
        yield InstanceProblem("cache", text)
    elif not all(report.cache_up for report in reports):
        text = "The shared cache is unreachable. DuckDB answers instead; nothing is lost."
        yield InstanceProblem("cache", text)
    yield from _each(
        "cache-refuses", (report.cache_refusal for report in reports), "The shared cache stores no new answers: "
    )
    yield from _each("store", state.store_problems)
    yield from _each("foreign-keys", (report.keys_problem for report in reports))
    yield from _each("went-back", went_back(state))
    if any(report.push_refused for report in reports):
        text = "The key store refuses CLIENT TRACKING. Revocations are not pushed and take up to 5 s."
        yield InstanceProblem("push", text)
    yield from _each("usage", (report.usage_problem for report in reports))


def _worker_problems(state: InstanceState, reports: list[WorkerReport]) -> Iterator[InstanceProblem]:
    yield from _each("release", (report.release_problem for report in reports))
    yield from _each("hang", {*(report.hung for report in reports), state.files_hang}, "A call hangs: ")
    yield from _unresponsive(state)
    full = [report.connections_limit for report in reports if report.connections > report.connections_limit > 0]
    if full:
        many = f"{len(full)} of {len(reports)} workers serve {full[0]:,} connections each, the most that are allowed"
        files = max(report.files_limit for report in reports)
        why = f"with {files:,} open files (ulimit -n, LimitNOFILE)" if files else "(FORECAST_CONNECTIONS)"
        yield InstanceProblem("connections", f"{many} {why}. Requests on further connections get a 503.")
    if len(reports) < state.wanted_workers:
        why = f" The last new worker ended: {sentence(state.start_problem)}" if state.start_problem is not None else ""
        yield InstanceProblem("workers", f"{len(reports)} of {state.wanted_workers} workers serve.{why}")


def _clock_problems(state: InstanceState) -> Iterator[InstanceProblem]:
    ahead = state.clock_ahead
    if ahead is not None and abs(ahead) > CLOCK_SECONDS:
        which = "ahead of" if ahead > 0 else "behind"
        text = f"This machine's clock is {in_words(round(abs(ahead)))} {which} the key store's."
        yield InstanceProblem("clock", f"{text} Days and expiry follow the key store's.")


def _drop_problems(state: InstanceState) -> Iterator[InstanceProblem]:
    yield from _each("mirror", (state.mirror_problem,), "Releases are not mirrored: ")
    yield from _each("inbox", (state.inbox_problem,), "Drops are not published: ")
    if state.inbox.held:
        yield InstanceProblem("held", _held(state.inbox), since=state.inbox.held_since)
    if state.drop_overdue:
        yield InstanceProblem("overdue", _overdue(state), since=time.time() - state.drop_overdue)


def _each(kind: Kind, found: Iterable[str | None], before: str = "") -> Iterator[InstanceProblem]:
    """Yields a problem for each different text."""
    several = {text for text in found if text}
    for text in sorted(several):
        yield InstanceProblem(kind, sentence(f"{before}{text}"), text if kind == "store" else "")


def _unresponsive(state: InstanceState) -> Iterator[InstanceProblem]:
    for worker in state.workers:
        if not worker.responds:
            yield InstanceProblem("silent", f"Worker {worker.pid} does not respond.", str(worker.pid))


def _held(inbox: InboxStatus) -> str:
    drops, them = ("1 drop waits", "it") if inbox.held == 1 else (f"{inbox.held} drops wait", "them")
    return f"{drops} for approval, for up to {in_words(inbox.held_age())}. `forecast extracts held` lists {them}."


def _overdue(state: InstanceState) -> str:
    last, every = in_words(state.last_drop_age or 0), in_words(state.drop_every or 0)
    return (
        f"The next drop is overdue by {in_words(state.drop_overdue)}. The last one came {last} ago, and "
        f"FORECAST_DROP_EVERY is {every}."
    )
