"""Samples requests: for the rankings of the operators' page, for the access log, for traces.

Most requests only count down to the next one in a sample.
"""

import random
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import lru_cache

import msgspec

from service.base import tracing
from service.base.ipc import AccessLogEntry, PartnerSample, Sample, SampleKind
from service.base.masking import masked
from service.base.telemetry import LATENCY_BOUNDS
from service.base.tracing import Trace, Tracer
from service.request.access_log import Kind, Made, Make, RequestLog, gap

# Approximate number of requests of one worker that are sampled for the rankings between two reports.
_SIGHTED = 25
# Limit for each kind between two reports. Frequent ones are among the first; the supervisor ranks
# (operators/ranking.py).
MOST_NAMES = 1_000
# Limit of a name: names are foreign text, and each is kept for long, in several places.
_LONGEST_NAME = 120
_MOST_LOOKED_AT = 1_000  # characters: an escaped key is several times as long


class Samples:
    """The counts of one worker, which owns it: by kind, name and detail, until they are reported."""

    def __init__(self) -> None:
        self._seen: dict[SampleKind, dict[tuple[str, str], int]] = {}
        self._partners: dict[str, PartnerSample] = {}
        self._errors: dict[str, Make] = {}  # the last one of each key

    def add_request(self, request: AccessLogEntry, count: int) -> None:
        """Counts a request of a partner, which stands for `count`."""
        partner = self._partner(request)
        if partner is None:
            return
        partner.statuses[request.status] = partner.statuses.get(request.status, 0) + count
        if request.tier in ("near", "shared", "warehouse"):
            partner.answers += count
            partner.cached += count if request.tier != "warehouse" else 0
        partner.seconds.counts[bisect_left(LATENCY_BOUNDS, request.milliseconds / 1000)] += count

    def add_error(self, key_id: str, make: Make) -> None:
        if len(self._errors) < MOST_NAMES or key_id in self._errors:
            self._errors[key_id] = make

    def take_partners(self) -> list[PartnerSample]:
        """Returns the partners seen since the last call."""
        errors, self._errors = self._errors, {}
        for make in errors.values():
            error = make()
            partner = self._partner(error)
            if partner is not None:
                partner.last_error = max(partner.last_error, f"{error.time} {error.status} {error.outcome}")
        seen, self._partners = self._partners, {}
        return list(seen.values())

    def _partner(self, request: AccessLogEntry) -> PartnerSample | None:
        """Returns the figures of the request's partner; None without a valid key, or with too many partners."""
        name, key_id = request.partner, request.key_id
        if name is None or key_id is None or (len(self._partners) >= MOST_NAMES and name not in self._partners):
            return None
        partner = self._partners.setdefault(name, PartnerSample(name))
        partner.keys.add(key_id)
        return partner

    def add(self, kind: SampleKind, name: str, detail: str = "", count: int = 1) -> None:
        seen = self._seen.get(kind)
        if seen is None:
            seen = self._seen[kind] = {}
        key = (shortened(name), detail)
        before = seen.get(key)
        if before is not None:
            seen[key] = before + count
        elif len(seen) < MOST_NAMES:
            seen[key] = count

    def take(self) -> list[Sample]:
        """Returns the requests seen since the last call."""
        seen, self._seen = self._seen, {}
        return [
            Sample(kind, name, detail, count) for kind, names in seen.items() for (name, detail), count in names.items()
        ]


def shortened(text: str) -> str:
    """Returns `text`, or its beginning, with keys masked. They are masked first: a cut key might not be recognised."""
    text = masked(text[:_MOST_LOOKED_AT])
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"


class RequestWatch:
    """One per worker, which owns it. While `skip` is above 0, a request that is neither slow nor an error nor a miss
    takes 1 off it, and is not sampled.

    `slow`, in seconds: a slower request is always logged. Without a `tracer`, none is traced.
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
        self.samples = Samples()
        self._uniform = uniform
        self._every = 1  # distance between sampled requests
        self._passed = 0  # requests since the last report
        # distance to the next sampled, and logged, request when `skip` was `_skipped`
        self._to_sight = self._to_log = 0
        self.skip = self._skipped = 0
        self._begin(sight=True, log=True)

    def sample(self, share: float) -> None:
        """Sets the number of requests logged among those that are neither errors nor slow."""
        self.log.share = share
        self._count_down()
        self._begin(log=True)

    def adapt(self) -> None:
        """Sets how many requests are sampled until the next report: what the rankings need at the present load."""
        self._count_down()
        self._every, self._passed = max(1, self._passed // _SIGHTED), 0

    def sample_in_turn(self, make: Callable[[], AccessLogEntry], *, slow: bool) -> None:
        """Samples a request whose turn it is, or which was slow. `make` makes its line."""
        self._count_down(1)
        sighted, logged = self._to_sight <= 0, self._to_log <= 0
        request = make()
        if sighted:
            self._sight(request, self._every)
        if logged or (slow and self.log.errors):
            self.log.add(request)
        self._begin(sight=sighted, log=logged)

    def log_error_in_turn(self, kind: Kind, make: Make, now: float) -> None:
        """Logs an error, `now`, in monotonic seconds. It counts in the rankings like other requests."""
        if self.skip > 0:
            self.skip -= 1
        else:
            self._count_down(1)
            sighted, logged = self._to_sight <= 0, self._to_log <= 0
            if sighted:
                request = make()
                self._sight(request, self._every)
                make = Made(request)
            self._begin(sight=sighted, log=logged)
        if self.log.errors:
            self.log.add_error(kind, make, now)

    def begin(self, headers: Iterable[tuple[bytes, bytes]], began: float) -> Trace | None:
        """Returns the trace of a request, if it is traced, for `sample_now`. `headers` have lower-case names."""
        if self.tracer is None or self._uniform() >= self.tracer.share:
            return None
        return tracing.begin([value for name, value in headers if name == b"traceparent"], began)

    def sample_now(self, request: AccessLogEntry, seconds: float, trace: Trace | None = None) -> None:
        """Samples a request outside its turn."""
        if trace is not None:
            trace.ended = time.monotonic()
            request = self._traced(request, trace)
        if not request.test:
            self._sight(request, 1)
        if (self.log.errors and (request.status >= 400 or seconds >= self.slow)) or self._uniform() < self.log.share:
            self.log.add(request)

    def _traced(self, request: AccessLogEntry, trace: Trace | None) -> AccessLogEntry:
        if self.tracer is None or trace is None:
            return request
        trace.recorded = True
        self.tracer.record(trace, request)
        return msgspec.structs.replace(request, trace_id=trace.trace_id)

    def _count_down(self, more: int = 0) -> None:
        """Counts the requests since the last time, and `more`."""
        passed = self._skipped - self.skip + more
        self._to_sight -= passed
        self._to_log -= passed
        self._passed += passed
        self._skipped = self.skip

    def _begin(self, *, sight: bool = False, log: bool = False) -> None:
        if sight:  # random, so that all requests of a fixed order are sampled eventually
            self._to_sight = 1 + int(self._uniform() * (2 * self._every - 1))
        if log:
            self._to_log = gap(self.log.share, self._uniform)
        self.skip = self._skipped = min(self._to_sight, self._to_log) - 1

    def _sight(self, request: AccessLogEntry, count: int) -> None:
        self.samples.add_request(request, count)
        add, partner = self.samples.add, request.partner or ""
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
    """Returns the time of day, in seconds since 1970, for a line of the log."""
    seconds = int(now)
    return f"{_second(seconds)}.{int((now - seconds) * 1000):03}+00:00"


@lru_cache(maxsize=1)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
