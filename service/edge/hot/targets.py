"""Which requests are hot: by their request line, what answers them."""

import re
from collections.abc import Callable

from service.base.telemetry import Telemetry
from service.cache.sieve import Node, Sieve
from service.edge.hot import heads
from service.edge.hot.remembered import Caller, ErrorTarget, Target, TargetCounts
from service.http.reading import Reading
from service.http.reply import Kept, KeptError

# Room for all ZIP codes and cities of the country: a walk through them all finds each again.
MOST_TARGETS = 100_000
MOST_TARGET_BYTES = 64 << 20
_OLD = b" HTTP/1.0"  # its connections carry one request each
_HEAD = b"HEAD "
# Of a target, beside its request line and query. Measured: a process grew by 0.95 to 1.02 of the whole.
_OVERHEAD_BYTES = 420


class Targets:
    """The targets of the current `release`. One per worker; its `HotAnswers` owns it.

    `find(line)` is the map's own (sieve.py): who answers what it found marks the node as visited, unless the target is
    of another release.
    """

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self.release: str | None = None  # the current one; targets of others are not answered
        self._sieve: Sieve[bytes, Target] = Sieve(MOST_TARGET_BYTES, MOST_TARGETS)
        self.find: Callable[[bytes], Node | None] = self._sieve.find
        self._counts: dict[tuple[str, str, str], TargetCounts] = {}  # by release, area, outcome

    def switched(self, release: str) -> None:
        """From now on requests are answered from `release`."""
        self.release = release
        self._counts.clear()

    def remember(self, url: bytes, area: str, kept: Kept | KeptError, query: str) -> Target | None:
        """The request for `url` is answered with what is kept: next time it is hot. None if nothing was remembered."""
        line, size = heads.request_line(url), 0
        target: Target
        if isinstance(kept, KeptError):
            target = ErrorTarget(line, area, kept, query, self._telemetry)
            size = target.size
        else:
            target = Target(line, area, kept, query, self._counts_of(kept, area))
        if target.release != self.release:
            return None
        cost = len(line) + len(query) + size + _OVERHEAD_BYTES
        return target if self._sieve.put(line, target, cost) else None

    def remember_read(self, line: "re.Match[bytes]", read: Reading) -> Target | None:
        """The request in this line means what was read: it is hot from now on, if its answer is kept."""
        kept = read.kept
        if kept is None:
            return None
        url = line[2] if line[3] is None else b"%b?%b" % (line[2], line[3])
        return self.remember(url, read.area, kept, read.asked.query)

    def find_other(self, head: bytes, end: int, caller: Caller) -> Node | None:
        """The target of a HEAD, or of a request in HTTP/1.0, whose connection closes after it."""
        line = head[:end]
        if line.startswith(_HEAD):
            line = b"GET " + line[len(_HEAD) :]
        if line.endswith(_OLD):
            caller.closes = True
            line = line[:-1] + b"1"
        return self.find(line)

    def _counts_of(self, kept: Kept, area: str) -> TargetCounts:
        counts = self._counts.get((kept.key.release, area, kept.outcome))
        if counts is None:
            counts = TargetCounts(kept.key.release, area, kept.outcome, self._telemetry)
            self._counts[kept.key.release, area, kept.outcome] = counts
        return counts
