"""Looks at some requests: at a sample for the rankings, at another one for the request log, at a third for traces.

A direct answer only counts down to the next request that is looked at. All else is looked at: it takes far longer.
"""

import random
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import lru_cache

import msgspec

from service.base import tracing
from service.base.seen import LoggedRequest
from service.base.tracing import Trace, Tracer
from service.edge.requests.log import Kind, Made, Make, RequestLog, gap
from service.edge.requests.sightings import Sightings

# Direct answers of one worker that are looked at for the rankings between two reports, about.
_SIGHTED = 25


class RequestWatch:
    """One per worker, which owns it. While `skip` is above 0, a direct answer takes 1 off it, and is not looked at.

    `slow`, in seconds: a request that takes longer is logged, whatever the sample. Without a `tracer`, none is traced.
    """

    def __init__(
        self,
        log: RequestLog,
        slow: float,
        uniform: Callable[[], float] = random.random,
        tracer: Tracer | None = None,
    ) -> None:
        self.log = log
        self.slow = slow
        self.tracer = tracer
        self.sightings = Sightings()
        self._uniform = uniform
        self._every = 1  # direct answers to one that is sighted
        self.errors = 0  # among them, since the last report
        # direct answers to the next one that is sighted, logged, traced, when `skip` was `_skipped`
        self._to_sight = self._to_log = self._to_trace = 0
        self.skip = self._skipped = 0
        self._begin(sight=True, log=True, trace=True)

    def sample(self, share: float) -> None:
        """From now on, so many of the requests that are neither errors nor slow are logged."""
        self.log.share = share
        self._count_down()
        self._begin(log=True)

    def adapt(self, direct: int) -> None:
        """So many direct answers were given since the last report, beside errors."""
        self._every, self.errors = max(1, (direct + self.errors) // _SIGHTED), 0

    def look_directly(self, make: Callable[[], LoggedRequest], note: Callable[[], Trace | None], *, slow: bool) -> None:
        """A direct answer was given, and it is its turn, or it was slow. `make` makes its line, `note` its trace; None
        if it must not be traced."""
        self._count_down(1)
        sighted, logged, traced = self._to_sight <= 0, self._to_log <= 0, self._to_trace <= 0
        request = self._traced(make(), note()) if traced else make()
        if sighted:
            self._sight(request, self._every)
        if logged or (slow and self.log.errors):
            self.log.told(request)
        self._begin(sight=sighted, log=logged, trace=traced)

    def look_at_error(
        self,
        kind: Kind,
        make: Make,
        now: float,
        note: Callable[[], Trace | None] = lambda: None,
    ) -> None:
        """A request was answered directly, with an error, `now`, in monotonic seconds. It has its turn in the rankings
        and traces like others."""
        self.errors += 1
        if self.skip > 0:
            self.skip -= 1
        else:
            self._count_down(1)
            sighted, logged, traced = self._to_sight <= 0, self._to_log <= 0, self._to_trace <= 0
            if sighted or traced:
                request = self._traced(make(), note()) if traced else make()
                if sighted:
                    self._sight(request, self._every)
                make = Made(request)
            self._begin(sight=sighted, log=logged, trace=traced)
        if self.log.errors:
            self.log.told_error(kind, make, now)

    def begin(self, headers: Iterable[tuple[bytes, bytes]]) -> Trace | None:
        """The trace of a request that is not answered directly, if it is traced; `look` wants it back. `headers` have
        lower-case names."""
        if self.tracer is None or self._uniform() >= self.tracer.share:
            return None
        return tracing.begin([value for name, value in headers if name == b"traceparent"], time.monotonic())

    def enter(self, trace: Trace | None) -> None:
        """From now on, the steps of this task are noted in `trace`."""
        if self.tracer is not None:
            tracing.enter(trace)  # also without one: the task may have been started in one of another request

    def look(self, request: LoggedRequest, seconds: float, trace: Trace | None = None) -> None:
        """A request was answered on the router path, or refused."""
        if trace is not None:
            trace.ended = time.monotonic()
            request = self._traced(request, trace)
        if not request.test:
            self._sight(request, 1)
        if (self.log.errors and (request.status >= 400 or seconds >= self.slow)) or self._uniform() < self.log.share:
            self.log.told(request)

    def _traced(self, request: LoggedRequest, trace: Trace | None) -> LoggedRequest:
        if self.tracer is None or trace is None:
            return request
        trace.told = True
        self.tracer.record(trace, request)
        return msgspec.structs.replace(request, trace_id=trace.trace_id)

    def _count_down(self, more: int = 0) -> None:
        """So many direct answers were given since the last time, and `more`."""
        passed = self._skipped - self.skip + more
        self._to_sight -= passed
        self._to_log -= passed
        self._to_trace -= passed
        self._skipped = self.skip

    def _begin(self, *, sight: bool = False, log: bool = False, trace: bool = False) -> None:
        if sight:  # at random, so that requests in a fixed order are all seen in the end
            self._to_sight = 1 + int(self._uniform() * (2 * self._every - 1))
        if log:
            self._to_log = gap(self.log.share, self._uniform)
        if trace:
            self._to_trace = gap(self.tracer.share if self.tracer is not None else 0.0, self._uniform)
        self.skip = self._skipped = min(self._to_sight, self._to_log, self._to_trace) - 1

    def _sight(self, request: LoggedRequest, count: int) -> None:
        add, partner = self.sightings.add, request.partner or ""
        if request.key_id is not None:
            add("key", request.key_id, partner, count)
        if request.status == 401:
            add("refused", request.key_id or request.address or "unknown", request.outcome, count)
        elif request.status == 429:
            add("limited", request.key_id or "", partner, count)
        elif request.area is not None and request.query is not None:
            asked = f"{request.area} {request.query}"
            if request.status == 404:
                add("unknown", asked, "", count)
            elif request.tier is not None:
                add("query", asked, "", count)
                if request.tier == "warehouse":
                    add("missed", asked, "", count)


def stamp(now: float) -> str:
    """The time of day, in seconds since 1970, for a line of the log."""
    seconds = int(now)
    return f"{_second(seconds)}.{int((now - seconds) * 1000):03}+00:00"


@lru_cache(maxsize=1)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
