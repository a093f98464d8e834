"""Pauses before a process that ended is started again."""

from collections import deque

_FIRST_BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS = 0.2, 5.0
# A process that lived this long did not die of its start.
_SETTLED_SECONDS = 10.0
# All is well when nothing was restarted for this long.
CALM_SECONDS = 60.0


class Backoff:
    """The pause before a process is started again; the keeper of a process owns one.

    It is `at_least` seconds after a process that had settled, and longer and longer while processes die of their start.
    """

    def __init__(
        self, at_least: float = 0.0, longest: float = LONGEST_BACKOFF_SECONDS, settled: float = _SETTLED_SECONDS
    ) -> None:
        self._at_least = at_least
        self._longest = longest
        self._settled = settled
        self._seconds = 0.0

    def after(self, lived: float) -> float:
        """The pause, in seconds, after a process that lived for `lived` seconds."""
        if lived > self._settled:
            self._seconds = self._at_least
        else:
            self._seconds = min(self._longest, max(_FIRST_BACKOFF_SECONDS, self._seconds * 2))
        return self._seconds


class Restarts:
    """When processes of one kind were restarted, in monotonic seconds."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=1000)

    def add(self, now: float) -> None:
        self._times.append(now)

    def lately(self, now: float) -> int:
        """How many there were in the last CALM_SECONDS."""
        return sum(now - time < CALM_SECONDS for time in self._times)
