"""The time of day by the key store's clock, which is the same for all workers (days, expiry)."""

import time

# A smaller difference is ignored.
_SLACK_SECONDS = 0.1


class StoreClock:
    """The key store's time of day, in seconds since 1970: its last reply, plus the monotonic time since then.

    Before the first reply, it is this machine's time of day. `base`: offset from monotonic seconds; None until then.
    """

    def __init__(self, base: float | None = None) -> None:
        self.base = base

    def __call__(self) -> float:
        return time.time() if self.base is None else time.monotonic() + self.base

    def update(self, replied: float, sent: float, received: float) -> bool:
        """Takes the store's time `replied`, replied between these two moments (monotonic seconds).

        Returns whether the clock difference changed by more than the round trip explains.
        """
        base = replied - (sent + received) / 2
        if self.base is not None and abs(base - self.base) <= (received - sent) / 2 + _SLACK_SECONDS:
            return False
        self.base = base
        return True

    @property
    def ahead(self) -> float | None:
        """Seconds by which this machine's clock is ahead of the store's; None before the store's first reply."""
        return None if self.base is None else time.time() - self()
