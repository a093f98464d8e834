"""A connection whose requests were all answered by the pipeline. Most connections never need anything else.

It has no transport of the loop, and is polled (base/polling.py). uvicorn's protocol, with its parser, flow control and
deadlines, is made for a connection when it first needs one, and goes on from there with a transport. It takes longer to
make than several answers, and of ten thousand of them the processor's cache holds few.
"""

import asyncio
import logging
from collections.abc import Callable
from time import monotonic

from uvicorn.server import ServerState

from service.base.polling import Channel
from service.connection import limits
from service.connection.deadlines import lifetime
from service.connection.direct import (
    DISPATCHED,
    WAITING,
    Arrived,
    Caller,
    DirectProtocol,
    MakeOutcome,
    Outcome,
    TakenOver,
    plain_answer,
)
from service.connection.door import Door
from service.connection.heads import HeadReader
from service.request.request import Request

log = logging.getLogger("forecast.access")


class LightServer:
    """What the light connections of one worker have in common; its server owns it.

    `make` makes the protocol that goes on with a connection. `keep_alive`: seconds after the last answer.
    """

    def __init__(self, door: Door, make: Callable[[], DirectProtocol], state: ServerState, keep_alive: float) -> None:
        self.door = door
        self.make = make
        self.state = state
        self.loop = asyncio.get_running_loop()
        self.keep_alive = keep_alive

    def look(self, data: bytes, address: str) -> "bytes | LightConnection":
        """Looks at what a connection has sent when it is accepted. Returns the answer to its only request, or the
        connection that goes on."""
        connection = LightConnection(self, address)
        return connection.answer_first(data) or connection


class LightConnection(Caller):
    """One connection of a partner, from its first byte until it is lost, or until another protocol goes on with it."""

    __slots__ = ("_aging", "_alarm", "_answered_at", "_asked", "_checked", "_first", "_old_at", "_opened_at",
                 "_server", "_whole", "channel")  # fmt: skip

    channel: Channel

    def __init__(self, server: LightServer, address: str) -> None:
        super().__init__(HeadReader(server.door.fields, address), address)
        self._server = server
        self._first: tuple[bytes, Outcome, Request | None, float] | None = None  # what was read before it was opened
        self._asked: bytes | None = None  # the head of the request that waits,
        self._checked: Request | None = None  # and what was found out about it
        self._answered_at = 0.0  # monotonic seconds; 0 before the first answer
        self._aging: asyncio.TimerHandle | None = None
        self._old_at = 0.0  # monotonic seconds
        self._whole: DirectProtocol | None = None  # what goes on with the connection

    # --- the channel ---------------------------------------------------------------------------------------------

    def opened(self) -> None:
        server = self._server
        self._opened_at = monotonic()
        self._alarm = server.loop.call_later(min(limits.HEAD_SECONDS, server.keep_alive), self._look_whether_idle)
        server.state.connections.add(self)  # type: ignore[arg-type]  # uvicorn calls `shutdown` of what is in there
        age = server.door.connection_age
        if age:
            seconds = lifetime(age)
            self._old_at, self._aging = self._opened_at + seconds, server.loop.call_later(seconds, self._grow_old)
        first, self._first = self._first, None
        over = len(server.state.connections) - server.door.most_connections
        if over > limits.MOST_TURNED_AWAY:
            server.door.rejected("unavailable")
            self.channel.reset()
        elif over > 0:
            self._hand_over(Arrived(first[0], None) if first is not None else None, is_one_too_many=True)
        elif first is not None:
            answer = self._settle(*first)
            if answer is not None:
                self.channel.write_soon(answer)

    def lost(self) -> None:
        self._asked = self._checked = None
        self._forget()

    def unwritten(self, rest: bytes, *, is_last: bool) -> None:
        """Its reader did not take the whole of an answer."""
        self._hand_over(rest=rest, is_last=is_last)

    def answered_last(self) -> None:
        self._close()

    def shutdown(self) -> None:
        """Called by the server when it stops. A request may be on its way."""
        if self._whole is not None:  # and waits for its transport
            self._whole.shutdown()
            return
        self._alarm.cancel()
        self._alarm = self._server.loop.call_later(DirectProtocol.idle_linger_seconds, self._close_if_idle)

    # --- requests ------------------------------------------------------------------------------------------------

    def received(self, data: bytes, now: float) -> bytes | None:
        server = self._server
        if self._asked is not None:
            self._hand_over(Arrived(data, None))
            return None
        if server.door.draining:
            self.closes = True
        return self._settle(data, *plain_answer(server.door, data, self, server.state, now, self), now)

    def answer_first(self, data: bytes) -> bytes | None:
        """Returns the answer to what the connection has sent before it is opened, if that is its only request."""
        now, server = monotonic(), self._server
        if server.door.draining:
            self.closes = True
        outcome, checked = plain_answer(server.door, data, self, server.state, now, self)
        if isinstance(outcome, bytes) and self.closes:
            return outcome
        self._first = data, outcome, checked, now
        if outcome is WAITING:
            self._asked = data
        return None

    def _settle(self, data: bytes, outcome: Outcome, checked: Request | None, now: float) -> bytes | None:
        if outcome is DISPATCHED:
            self._hand_over(Arrived(data, checked))
            return None
        if outcome is WAITING:
            self._asked, self._checked, self.arrived_at = data, checked, now
            return None
        self._answered_at = now
        return outcome

    def finish(self, make: MakeOutcome) -> bool:
        """The request that waited can be answered now, or is dispatched. False: nobody is left to answer."""
        if self._whole is not None:
            return self._whole.finish(make)
        asked = self._asked
        if asked is None:
            return False
        self._answer_asked(asked, make)
        return True

    def _answer_asked(self, asked: bytes, make: MakeOutcome) -> None:
        if self._server.door.draining:
            self.closes = True
        try:
            outcome, checked = make(), self._checked
            self._asked = self._checked = None
            if isinstance(outcome, bytes):
                self._answered_at = monotonic()
                self.channel.write_soon(outcome)
            else:
                self._hand_over(Arrived(asked, checked))
        except Exception:  # as for a defect in `received`
            log.exception("a request that waited could not be answered")
            self.channel.abort()

    # --- its end -------------------------------------------------------------------------------------------------

    def _close(self) -> None:
        self.channel.close(self._server.state.connections)
        self.lost()

    def _hand_over(
        self, arrived: Arrived | None = None, rest: bytes = b"", *, is_last: bool = False, is_one_too_many: bool = False
    ) -> None:
        """Another protocol goes on with the connection, and with the request that waits."""
        self._stop_alarms()
        self._whole = whole = self._server.make()
        whole.take_over(
            TakenOver(
                caller=self,
                asked=self._asked,
                checked=self._checked,
                arrived=arrived,
                rest=rest,
                is_last=is_last,
                age_left=self._old_at - monotonic() if self._old_at else None,
                silent_since=self._opened_at if not self._answered_at else None,
                answered_at=self._answered_at,
                is_one_too_many=is_one_too_many,
            )
        )
        self.channel.hand_over(whole, self._forget)

    def _forget(self) -> None:
        self._stop_alarms()
        self._server.state.connections.discard(self)

    def _stop_alarms(self) -> None:
        self._alarm.cancel()
        if self._aging is not None:
            self._aging.cancel()

    def _grow_old(self) -> None:
        """The next answer is the last."""
        self.closes, self._old_at = True, monotonic()  # a timer may be early

    def _close_if_idle(self) -> None:
        if self._asked is None:
            self._close()
        else:
            self.shutdown()

    def _look_whether_idle(self) -> None:
        """One alarm for the first request, and then for the next ones: setting one for each would cost an answer."""
        keep_alive = self._server.keep_alive
        due = self._answered_at + keep_alive if self._answered_at else self._opened_at + limits.HEAD_SECONDS
        rest = due - monotonic() if self._asked is None else keep_alive
        if rest > 0:
            self._alarm = self._server.loop.call_later(rest, self._look_whether_idle)
        else:
            self._close()
