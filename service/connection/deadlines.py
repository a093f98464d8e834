"""How long a connection may take: to send a request, to read its answer, to ask again."""

import asyncio
import random
from collections.abc import Callable
from time import monotonic

from service.base import closing
from service.connection import limits


class Deadlines:
    """The deadlines of one connection, which makes them with its transport and calls `end` when it is lost.

    `on_late` is called when a request has not arrived in time, `on_idle` when `keep_alive` seconds have passed since
    the pipeline's last answer; the connection decides what follows. A reader that takes nothing in time is reset here.
    """

    __slots__ = ("_age", "_answered_at", "_arrival", "_idle", "_keep_alive", "_loop", "_on_idle", "_on_late",
                 "_reading", "_transport")  # fmt: skip

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        keep_alive: float,
        on_late: Callable[[], None],
        on_idle: Callable[[], None],
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._keep_alive = keep_alive
        self._on_late = on_late
        self._on_idle = on_idle
        self._answered_at = 0.0  # monotonic seconds
        # one alarm per deadline, None while it is not set
        self._arrival: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._age: asyncio.TimerHandle | None = None

    def await_age(self, seconds: float, on_old: Callable[[], None]) -> None:
        """Calls `on_old` in so many seconds."""
        self._age = self._loop.call_later(seconds, on_old)

    def await_request(self, since: float | None = None) -> None:
        """From now on, or since then (monotonic seconds), unless it is awaited already: what arrives in between wins no
        time."""
        if self._arrival is None:
            gone = monotonic() - since if since is not None else 0.0
            self._arrival = self._loop.call_later(max(0.0, limits.HEAD_SECONDS - gone), self._late)

    def arrived(self) -> None:
        """The whole request has arrived, or was refused."""
        if self._arrival is not None:
            self._arrival.cancel()
            self._arrival = None

    def answered(self, now: float) -> None:
        """The pipeline answered a request at `now`, in monotonic seconds. One alarm serves all such answers of a
        connection: setting one for each would cost as much as answering."""
        if self._arrival is not None:
            self.arrived()
        self._answered_at = now
        if self._idle is None:
            self._idle = self._loop.call_later(self._keep_alive, self._look_whether_idle)

    def await_reader(self) -> None:
        """The transport's buffer is full."""
        if self._reading is None:
            self._reading = self._loop.call_later(closing.READ_SECONDS, closing.reset, self._transport)

    def reader_took(self) -> None:
        """The buffer is no longer full."""
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def end(self) -> None:
        """The connection is lost."""
        for alarm in (self._arrival, self._reading, self._idle, self._age):
            if alarm is not None:
                alarm.cancel()
        # they refer to the connection, which would otherwise stay until garbage is collected
        del self._on_late, self._on_idle

    def _late(self) -> None:
        self._arrival = None
        self._on_late()

    def _look_whether_idle(self) -> None:
        self._idle = None
        rest = self._answered_at + self._keep_alive - monotonic()
        if rest > 0:
            self._idle = self._loop.call_later(rest, self._look_whether_idle)
        else:
            self._on_idle()


def lifetime(age: float) -> float:
    """About `age` seconds: connections that were opened together, as after a deploy, must not all close together."""
    return age * random.uniform(0.9, 1.1)  # noqa: S311 - no secret
