"""How long a connection waits for what is to arrive next, and how old it becomes."""

import asyncio
import random
from time import monotonic
from typing import Protocol

from service.connection import limits
from service.connection.door import Door


class Watched(Protocol):
    """What deadlines use of a connection."""

    @property
    def is_busy(self) -> bool:
        """A request is under way."""
        ...

    @property
    def is_in_message(self) -> bool:
        """A request has arrived in part."""
        ...

    def expire(self) -> None:
        """The connection has waited long enough."""
        ...


class Deadlines:
    """The times of one connection, which owns it, in monotonic seconds.

    `arrives_since`: None if no request is awaited that has begun, or is the first. `answered_at`: the last time. From
    `old_at` on, the connection closes with its next answer.
    """

    __slots__ = ("_alarm", "_door", "_stops_at", "_watched", "answered_at", "arrives_since", "old_at")

    def __init__(self, watched: Watched, door: Door, now: float) -> None:
        self.arrives_since: float | None = now
        self.answered_at = 0.0
        age = door.connection_age
        self.old_at = now + lifetime(age) if age else float("inf")
        self._stops_at = float("inf")
        self._watched: Watched | None = watched
        self._door = door
        self._alarm: asyncio.TimerHandle | None = None

    def watch(self) -> None:
        """Sets the alarm. There is one for everything: one for each request would cost as much as an answer."""
        if self._alarm is not None:
            self._alarm.cancel()
        if self._watched is not None:
            left = max(0.0, self._due(self._watched) - monotonic())
            self._alarm = asyncio.get_running_loop().call_later(left, self._ring)

    def arriving(self) -> None:
        """A request has begun to arrive. What arrives while it does wins no time."""
        if self.arrives_since is None:
            self.arrives_since = monotonic()
            self.watch()

    def stop(self) -> None:
        """The server stops: a request that is on its way has `linger` seconds left."""
        self._stops_at = monotonic() + self._door.linger
        self.watch()

    def end(self) -> None:
        """The connection is lost, and nothing refers to it any more."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._watched = None

    def _due(self, watched: Watched) -> float:
        if self.arrives_since is not None:
            due = self.arrives_since + limits.HEAD_SECONDS
        elif watched.is_busy:
            return monotonic() + self._door.keep_alive
        else:
            due = self.answered_at + self._door.keep_alive
        return due if watched.is_in_message else min(due, self._stops_at)

    def _ring(self) -> None:
        watched = self._watched
        if watched is None:
            return
        if self._due(watched) > monotonic():
            self.watch()
        else:
            watched.expire()


def lifetime(age: float) -> float:
    """About `age` seconds: connections that were opened together, as after a deploy, must not all close together."""
    return age * random.uniform(0.9, 1.1)  # noqa: S311 - no secret
