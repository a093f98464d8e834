"""How long a connection waits for the next bytes, and how old it may become."""

import asyncio
import random
from time import monotonic
from typing import Protocol

from service.connection import limits
from service.connection.door import Door


class Watched(Protocol):
    """The interface of a connection to its deadlines."""

    @property
    def is_busy(self) -> bool:
        """Whether a request is under way."""
        ...

    @property
    def is_in_message(self) -> bool:
        """Whether a request has arrived in part."""
        ...

    def expire(self) -> None:
        """Called when the connection has waited long enough."""
        ...


class Deadlines:
    """The times of one connection, which owns it, in monotonic seconds.

    `arrives_since`: since when a request arrives, or the first one is awaited; else None. `answered_at`: time of the
    last answer. From `old_at` on, the connection closes with its next answer.
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
        """Sets the alarm. One alarm serves all deadlines: one for each request would cost as much as an answer."""
        if self._alarm is not None:
            self._alarm.cancel()
        if self._watched is not None:
            left = max(0.0, self._due(self._watched) - monotonic())
            self._alarm = asyncio.get_running_loop().call_later(left, self._ring)

    def arriving(self) -> None:
        """Called when a request starts to arrive. Later bytes of it do not extend the deadline."""
        if self.arrives_since is None:
            self.arrives_since = monotonic()
            self.watch()

    def stop(self) -> None:
        """Leaves `linger` seconds for a request that is arriving, since the server stops."""
        self._stops_at = monotonic() + self._door.linger
        self.watch()

    def end(self) -> None:
        """Called when the connection is lost, and no longer referenced."""
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
    """Returns about `age` seconds: connections opened together, as after a deploy, must not all close together."""
    return age * random.uniform(0.9, 1.1)  # noqa: S311 - no secret
