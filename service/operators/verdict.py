"""The verdict of one instance: its status and reasons, without those that come and go within moments."""

from collections.abc import Callable

import msgspec

from service.operators.figures import Figures
from service.operators.overview import NextStep, Reason, Verdict
from service.operators.reasons import InstanceProblem, problems_of
from service.operators.state import InstanceState, Status

# A problem is shown once it has lasted this long, or at once if requests failed meanwhile.
PATIENCE_SECONDS = 2.0
# A problem stays this long after its end, so that it can be read. If it returns meanwhile, its start stays.
STAY_SECONDS = 10.0
# Partners get errors if at least this many requests of the last minute failed, and at least this share.
_ERRORS, _ERROR_SHARE = 5, 0.01
_SENTENCES = {
    "ready": "All is well.",
    "degraded": "Partners get answers.",
    "errors": "Partners get errors.",
    "unavailable": "Partners get no answers.",
}

_Identity = tuple[str, str]  # kind and name of a problem


class _Noticed(msgspec.Struct):
    """A problem from its first look to some time after its last. Times are monotonic seconds."""

    problem: InstanceProblem
    began: float
    failed: int  # requests that had failed before it
    seen: float
    shown: bool = False


class VerdictBoard:
    """Remembers the problems of one instance. Its observer owns it, and calls `look` about once a second."""

    def __init__(self, tick: float) -> None:
        self.next_step: Callable[[InstanceProblem], NextStep | None] = lambda _: None
        self._noticed: dict[_Identity, _Noticed] = {}
        self._status: Status = "ready"
        self._now = self._well_since = tick
        self._failed = 0  # requests, up to the last look

    def look(self, tick: float, state: InstanceState, minute: Figures, failed: int) -> None:
        """`minute` has the figures of the last minute; `failed` counts all requests that failed so far.

        While the instance is unavailable, only the cause is found, and earlier problems stay noticed.
        """
        self._now = tick
        self._status, problems = _all_problems(state, minute)
        for problem in problems:
            before = self._noticed.get(_identity(problem))
            one = before or _Noticed(problem, tick, self._failed, tick)
            one.problem, one.seen = problem, tick
            lasts = tick - one.began >= PATIENCE_SECONDS or failed > one.failed
            one.shown = one.shown or lasts or self._status == "unavailable"
            self._noticed[_identity(problem)] = one
        was_well = not self._shown()
        if self._status != "unavailable":
            self._noticed = {key: one for key, one in self._noticed.items() if self._stays(one)}
        if not was_well and not self._shown():
            self._well_since = tick
        self._failed = failed

    def verdict(self, offset: float) -> Verdict:
        """`offset` converts monotonic to Unix seconds."""
        shown = self._shown()
        if not shown:
            return Verdict("ok", _SENTENCES["ready"], self._well_since + offset)
        reasons = tuple(self._reason(one, offset) for one in shown)
        unavailable = self._status == "unavailable"
        failing = not unavailable and any(one.problem.kind == "errors" for one in shown)
        consequence = _SENTENCES["errors" if failing else "unavailable" if unavailable else "degraded"]
        sentence = f"{consequence} {'Ended a moment ago: ' if reasons[0].ended else ''}{reasons[0].text}"
        return Verdict("unavailable" if unavailable else "degraded", sentence, reasons[0].since, reasons)

    def _stays(self, one: _Noticed) -> bool:
        """Whether a problem is still there, or ended just now. The cause of an outage does not outlast it."""
        if one.seen == self._now:
            return True
        blocking = one.problem.kind in ("stopping", "starting", "unpublished")
        return not blocking and self._now - one.seen < STAY_SECONDS

    def _shown(self) -> list[_Noticed]:
        """Returns the problems to show: those that last, in their order, then those that ended."""
        shown = [one for one in self._noticed.values() if one.shown]
        if self._status == "unavailable":
            shown = [one for one in shown if one.seen == self._now]
        return sorted(shown, key=lambda one: (one.seen != self._now, _ORDER.get(one.problem.kind, 0)))

    def _reason(self, one: _Noticed, offset: float) -> Reason:
        return Reason(
            text=one.problem.text,
            since=one.problem.since or one.began + offset,
            kind=one.problem.kind,
            ended=None if one.seen == self._now else one.seen + offset,
            next=self.next_step(one.problem),
        )


# The cause comes before the consequences.
_ORDER = {"restarts": 1, "errors": 2}


def _identity(problem: InstanceProblem) -> _Identity:
    return problem.kind, problem.name


def _all_problems(state: InstanceState, minute: Figures) -> tuple[Status, list[InstanceProblem]]:
    """Returns the status and its problems: those of readiness, then restarted processes, then errors."""
    status, problems = problems_of(state)
    if state.restarted:  # the process may end again
        text = f"Restarted in the last minute: {', '.join(state.restarted)}."
        problems = [*problems, InstanceProblem("restarts", text)]
    failed = minute.of_class(5)
    if failed >= _ERRORS and failed >= _ERROR_SHARE * minute.asked:
        share = f"{failed / minute.asked:.1%}" if failed < minute.asked else "All"
        problems = [*problems, InstanceProblem("errors", f"{share} of the requests of the last minute failed (5xx).")]
    return "degraded" if problems and status == "ready" else status, problems
