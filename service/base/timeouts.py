"""Timeouts that a stalled event loop cannot trip.

Timers come first in a turn of the event loop, and in a loop with thousands of ready connections one turn may take
longer than a timeout: it would end a call whose reply has long arrived. The refused client would retry, so that the
loop stays busy forever. Hence a timeout is split into eighths, each begun after the one before: a turn spends one,
however long it takes.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TypeVar

log = logging.getLogger("forecast.base")

T = TypeVar("T")

_PARTS = 8


class Alarm:
    """Calls `ring` after `seconds`, and not before the loop has turned a few times; unless it is cancelled."""

    __slots__ = ("_left", "_loop", "_part", "_ring", "_timer")

    def __init__(self, seconds: float, ring: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._ring = ring
        self._part = seconds / _PARTS
        self._left = _PARTS - 1
        self._timer = self._loop.call_later(self._part, self._next)

    def cancel(self) -> None:
        self._timer.cancel()

    def _next(self) -> None:
        if self._left:
            self._left -= 1
            self._timer = self._loop.call_later(self._part, self._next)
        else:
            self._ring()


class OldestFirst:
    """One alarm for all calls in a queue, as one for each would cost more than a reply.

    `due` returns the deadline of the oldest call (monotonic seconds), or None if no call waits. `late` is called with
    the deadline that has passed.
    """

    __slots__ = ("_alarm", "_due", "_late", "_until")

    def __init__(self, due: Callable[[], float | None], late: Callable[[float], None]) -> None:
        self._due = due
        self._late = late
        self._alarm: Alarm | None = None
        self._until = 0.0

    def watch(self) -> None:
        """Starts to time a call that waits."""
        if self._alarm is None and (due := self._due()) is not None:
            self._until, self._alarm = due, Alarm(max(0.0, due - monotonic()), self._ring)

    def _ring(self) -> None:
        self._alarm = None
        due = self._due()
        if due is not None and due <= self._until:
            self._late(self._until)
        self.watch()


async def within(seconds: float, work: Awaitable[T]) -> T:
    """Returns the result of `work`, which is cancelled when an Alarm of `seconds` rings.

    Raises:
        TimeoutError: if it rang.
    """
    async with asyncio.timeout(None) as limit:
        alarm = Alarm(seconds, lambda: limit.reschedule(asyncio.get_running_loop().time()))
        try:
            return await work
        finally:
            alarm.cancel()
