"""A circuit breaker: after a few failures in a row nobody waits any more, until a probe succeeds.

Pure: it decides, and knows neither clock nor network.
"""

from collections.abc import Callable

# One failure can be a lost packet; three in a row are an outage.
FAILURES_TO_OPEN = 3


class CircuitBreaker:
    """`on_change` is told True when the circuit closes (healthy) and False when it opens."""

    def __init__(self, on_change: Callable[[bool], None] = lambda _: None) -> None:
        self._failures = 0
        self._on_change = on_change
        self.is_open = False

    def success(self) -> None:
        self._failures = 0
        if self.is_open:
            self.is_open = False
            self._on_change(True)

    def failure(self) -> None:
        self._failures += 1
        if not self.is_open and self._failures >= FAILURES_TO_OPEN:
            self.is_open = True
            self._on_change(False)
