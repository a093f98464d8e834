"""A look-up of a key that is kept, and who waits for it."""

import logging
from collections.abc import Callable

from service.base.patience import Alarm

log = logging.getLogger("forecast.keys")


class Recheck:
    """One look-up, from when it is sent until it ends. Any number may wait for it."""

    __slots__ = ("_alarm", "_waiting")

    def __init__(self) -> None:
        self._waiting: list[Callable[[], None]] = []
        self._alarm: Alarm | None = None

    def wait(self, told: Callable[[], None], seconds: float) -> None:
        """`told` is called when the look-up has ended, or when the first who waits has waited for so many seconds."""
        if self._alarm is None:
            self._alarm = Alarm(seconds, self.end)
        self._waiting.append(told)

    def end(self) -> None:
        """Tells all who wait."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        waiting, self._waiting = self._waiting, []
        for told in waiting:
            try:
                told()
            except Exception:  # a defect of one must not keep the others waiting
                log.exception("who waited for a key could not be told")
