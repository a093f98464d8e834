"""Looks at some requests: at a sample for the rankings, and at another one for the request log.

A direct answer only counts down to the next request that is looked at. All else is looked at: it takes far longer.
"""

import os
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime

from service.base.seen import LoggedRequest
from service.edge.requests.log import RequestLog, gap
from service.edge.requests.sightings import Sightings

# Direct answers of one worker that are looked at for the rankings between two reports, about.
_SIGHTED = 25
PID = os.getpid()


class RequestWatch:
    """One per worker, which owns it. While `skip` is above 0, a direct answer takes 1 off it, and is not looked at.

    `slow`, in seconds: a request that takes longer is logged, whatever the sample.
    """

    def __init__(self, log: RequestLog, slow: float, uniform: Callable[[], float] = random.random) -> None:
        self.log = log
        self.slow = slow
        self.sightings = Sightings()
        self._uniform = uniform
        self._every = 1  # direct answers to one that is sighted
        # direct answers to the next one that is sighted, and to the next one that is logged, when `skip` was `_skipped`
        self._to_sight = self._to_log = 0
        self.skip = self._skipped = 0
        self._begin(sight=True, log=True)

    def sample(self, share: float) -> None:
        """From now on, so many of the requests that are neither errors nor slow are logged."""
        self.log.share = share
        self._count_down()
        self._begin(log=True)

    def adapt(self, direct: int) -> None:
        """So many direct answers were given since the last report."""
        self._every = max(1, direct // _SIGHTED)

    def look_directly(self, make: Callable[[], LoggedRequest], *, slow: bool) -> None:
        """A direct answer was given, and it is its turn, or it was slow. `make` makes its line."""
        self._count_down()
        self._to_sight -= 1
        self._to_log -= 1
        sighted, logged = self._to_sight <= 0, self._to_log <= 0
        if sighted or logged or slow:
            request = make()
            if sighted:
                self._sight(request, self._every)
            if logged or (slow and self.log.errors):
                self.log.told(request)
        self._begin(sight=sighted, log=logged)

    def look(self, request: LoggedRequest, seconds: float) -> None:
        """A request was answered on the router path, or refused."""
        self._sight(request, 1)
        if (self.log.errors and (request.status >= 400 or seconds >= self.slow)) or self._uniform() < self.log.share:
            self.log.told(request)

    def _count_down(self) -> None:
        passed = self._skipped - self.skip
        self._to_sight -= passed
        self._to_log -= passed
        self._skipped = self.skip

    def _begin(self, *, sight: bool = False, log: bool = False) -> None:
        if sight:  # at random, so that requests in a fixed order are all seen in the end
            self._to_sight = 1 + int(self._uniform() * (2 * self._every - 1))
        if log:
            self._to_log = gap(self.log.share, self._uniform)
        self.skip = self._skipped = min(self._to_sight, self._to_log) - 1

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


def stamp() -> str:
    """The time of day, for a line of the log."""
    return datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds")
