"""A circuit breaker: after a few failures in a row, no call is made until a probe succeeds.

Pure: it uses neither clock nor network.
"""

from collections.abc import Callable

# Failures in a row: one can be a lost packet, three are an outage.
FAILURES_TO_OPEN = 3


class CircuitBreaker:
    """Part of one RedisStore. `on_change` is called with True when the circuit closes, with False when it opens."""

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
        if self._failures >= FAILURES_TO_OPEN:
            self.trip()

    def trip(self) -> None:
        """Opens at once: the failure cannot be a single lost packet."""
        if not self.is_open:
            self.is_open = True
            self._on_change(False)
