"""Pauses before an ended process is restarted."""

from collections import deque

_FIRST_BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS = 0.2, 5.0
# A process that lived this long did not fail at startup.
_SETTLED_SECONDS = 10.0
# Without restarts for this long, all is well.
CALM_SECONDS = 60.0


class Backoff:
    """The pause before a process is restarted; the parent of a process owns one.

    There is none after a process that had settled. It grows while processes fail at startup.
    """

    def __init__(self, longest: float = LONGEST_BACKOFF_SECONDS, settled: float = _SETTLED_SECONDS) -> None:
        self._longest = longest
        self._settled = settled
        self._seconds = 0.0

    def after(self, lived: float) -> float:
        """Returns the pause, in seconds, after a process that lived for `lived` seconds."""
        if lived > self._settled:
            self._seconds = 0.0
        else:
            self._seconds = min(self._longest, max(_FIRST_BACKOFF_SECONDS, self._seconds * 2))
        return self._seconds


class Restarts:
    """When processes of one kind were restarted, in monotonic seconds."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=1000)

    def add(self, now: float) -> None:
        self._times.append(now)

    def recent_count(self, now: float) -> int:
        """Returns the number of failures in the last CALM_SECONDS."""
        return sum(now - time < CALM_SECONDS for time in self._times)
