"""The time of day by the key store's clock, which is the same for all workers (days, expiry)."""

import time

# A smaller difference is none.
_SLACK_SECONDS = 0.1


class StoreClock:
    """Seconds since 1970, as the key store would say now: what it said last, and what has passed since by a clock that
    is never set. Before the store has said anything, it is this machine's time of day.

    `base`: what to add to monotonic seconds; None until the store has said something.
    """

    def __init__(self, base: float | None = None) -> None:
        self.base = base

    def __call__(self) -> float:
        return time.time() if self.base is None else time.monotonic() + self.base

    def heard(self, said: float, sent: float, received: float) -> bool:
        """The store answered `said`, some time between these two (monotonic seconds). Returns whether that is news: a
        difference that the way there and back explains is none."""
        base = said - (sent + received) / 2
        if self.base is not None and abs(base - self.base) <= (received - sent) / 2 + _SLACK_SECONDS:
            return False
        self.base = base
        return True

    @property
    def ahead(self) -> float | None:
        """By how many seconds this machine's clock is ahead of the store's; None if the store has said nothing yet."""
        return None if self.base is None else time.time() - self()
