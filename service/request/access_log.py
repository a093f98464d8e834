"""The request log: a line for each request in a sample, for each slow one, and for each error.

Similar errors are one line with a count.
"""

import math
import random
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

import msgspec

from service.base.ipc import AccessLogEntry

# For a share of 0: no request is so far away.
NEVER = 1 << 62
# Smaller shares count as 0: one request in a billion.
_LEAST_SHARE = 1e-9
# Similar errors are logged again after this long, together.
FOLD_SECONDS = 10.0
_MOST_FOLDED = 1_000  # kinds of errors
_MOST_KEPT = 10_000  # lines that `find` knows
# Limit of similar errors, until they are logged together. A flood of them evicts no others, and reuses the memory of
# its records: spread over the processor's caches, they cost a tenth of an answer.
_MOST_ALIKE = 1_000

# Similar errors share status, outcome, area, and the key's id or the address.
Kind = tuple[int, str, str | None, str | None]
Write = Callable[[AccessLogEntry], None]


class Make(Protocol):
    """Makes the line of a request. Thousands are kept, so the garbage collector skips them (`gc=False`)."""

    @property
    def request_id(self) -> str | bytes: ...

    def __call__(self) -> AccessLogEntry: ...


# A Make keeps the parts of its request that the line needs. For a longer address (in bytes), the line is made at once,
# because it is shorter.
LONG = 300


class Made(msgspec.Struct, gc=False):
    """A finished line."""

    line: AccessLogEntry

    @property
    def request_id(self) -> str:
        return self.line.request_id

    def __call__(self) -> AccessLogEntry:
        return self.line


def gap(share: float, uniform: Callable[[], float] = random.random) -> int:
    """Returns the distance to the next request of a sample, so that each request has the chance `share`."""
    if share >= 1:
        return 1
    if share < _LEAST_SHARE:
        return NEVER
    return 1 + int(math.log(1.0 - uniform()) / math.log1p(-share))


def share_logged(setting: str | float) -> float:
    """Returns the share of requests that FORECAST_ACCESS_LOG sets."""
    return setting if isinstance(setting, float) else 1.0 if setting == "all" else 0.0


class _Folded(msgspec.Struct):
    """Similar errors: `until` then further ones are only counted; their number, and the Make of the last line."""

    until: float
    make: Make
    count: int = 0


class RequestLog:
    """The request log of one worker, which owns it. `share`: of the requests that are neither errors nor slow.

    `errors`: whether those are logged. `write` writes one line.
    """

    def __init__(
        self, share: float, *, errors: bool, write: Write, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.share = share
        self.errors = errors
        self._write = write
        self._clock = clock
        self._kept: deque[Make] = deque(maxlen=_MOST_KEPT)
        self._folded: dict[Kind, _Folded] = {}

    def add(self, request: AccessLogEntry) -> None:
        """Logs `request`. An error similar to one logged just now is logged later, together with others."""
        if request.status >= 400:
            kind = (request.status, request.outcome, request.area or request.detail, request.key_id or request.address)
            self.add_error(kind, Made(request), self._clock())
        else:
            self._kept.append(Made(request))
            self._write(request)

    def add_error(self, kind: Kind, make: Make, now: float) -> None:
        """Adds an error whose line is made only when it is read. `now` is by the clock of the log."""
        folded = self._folded.get(kind)
        if folded is not None and now < folded.until:
            folded.count += 1
            folded.make = make
            if folded.count < _MOST_ALIKE:
                self._kept.append(make)
            return
        self._kept.append(make)
        if folded is not None:
            self._log_error(folded)
        elif len(self._folded) >= _MOST_FOLDED:
            self.log_folded(at_once=True)
        self._write(make())
        self._folded[kind] = _Folded(now + FOLD_SECONDS, make)

    def log_folded(self, *, at_once: bool = False) -> None:
        """Logs similar errors that are due, or all. Call it once a second, and at the end."""
        now = self._clock()
        for kind, folded in list(self._folded.items()):
            if at_once or now >= folded.until:
                del self._folded[kind]
                self._log_error(folded)

    def find(self, request_id: str) -> list[AccessLogEntry]:
        """Returns the entries of a request; there may be several with its id."""
        wanted = (request_id, request_id.encode())
        newest = [folded.make for folded in self._folded.values() if folded.count >= _MOST_ALIKE]
        return [make() for make in (*self._kept, *newest) if make.request_id in wanted]

    def _log_error(self, folded: _Folded) -> None:
        if folded.count:
            self._write(msgspec.structs.replace(folded.make(), count=folded.count))
