"""A connection that has asked for nothing but what is answered directly. Most never ask for anything else.

uvicorn's protocol, with its parser, flow control and deadlines, is made for a connection when it first needs one, and
goes on from there. It takes longer to make than several answers, and of ten thousand of them the processor's cache
holds few.
"""

import asyncio
import logging
from collections.abc import Callable
from time import monotonic

from uvicorn.server import ServerState

from service.base import closing
from service.edge.admission import limits
from service.edge.connection.deadlines import lifetime
from service.edge.connection.direct import DirectProtocol, plain_answer
from service.edge.gate import Gate
from service.edge.hot.answers import HotAnswers
from service.edge.hot.heads import HeadReader
from service.edge.hot.remembered import Caller
from service.edge.hot.waiting import FOR_ROUTER, WAITING, HotOutcome
from service.http.head import RequestHead

log = logging.getLogger("forecast.access")


class LightServer:
    """What the light connections of one worker have in common; its server owns it.

    `make` makes the protocol that goes on with a connection. `keep_alive`: seconds after the last answer.
    """

    def __init__(
        self, gate: Gate, hot: HotAnswers, make: Callable[[], DirectProtocol], state: ServerState, keep_alive: float
    ) -> None:
        self.gate = gate
        self.hot = hot
        self.make = make
        self.state = state
        self.loop = asyncio.get_running_loop()
        self.keep_alive = keep_alive


class LightConnection(Caller, asyncio.Protocol):
    """One connection of a partner, from its first byte until it is lost, or until another protocol goes on with it.

    `sent_first` is what it has sent before it was made.
    """

    __slots__ = ("_aging", "_alarm", "_answered_at", "_asked", "_checked", "_hot", "_old_at", "_opened_at",
                 "_sent_first", "_server", "_transport", "_whole")  # fmt: skip

    def __init__(self, server: LightServer, address: str, sent_first: bytes = b"") -> None:
        super().__init__(HeadReader(server.hot.fields, address), address)
        self._server = server
        self._hot = server.hot
        self._sent_first = sent_first
        self._asked: bytes | None = None  # the head of the request that waits,
        self._checked: RequestHead | None = None  # and what was found out about it
        self._answered_at = 0.0  # monotonic seconds; 0 before the first answer
        self._aging: asyncio.TimerHandle | None = None
        self._old_at = 0.0  # monotonic seconds
        self._whole: DirectProtocol | None = None  # what goes on with the connection

    # --- the transport -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        server = self._server
        self._transport = transport
        # an answer goes out at once, not at the end of the loop's turn, which may be long
        transport.set_write_buffer_limits(high=0)
        self._opened_at = monotonic()
        self._alarm = server.loop.call_later(min(limits.HEAD_SECONDS, server.keep_alive), self._look_whether_idle)
        server.state.connections.add(self)  # type: ignore[arg-type]  # uvicorn calls `shutdown` of what is in there
        age = server.gate.connection_age
        if age:
            seconds = lifetime(age)
            self._old_at, self._aging = self._opened_at + seconds, server.loop.call_later(seconds, self._grow_old)
        if len(server.state.connections) > server.gate.most_connections:
            self._hand_over(was_let_in=False)
        data, self._sent_first = self._sent_first, b""
        if data and not transport.is_closing():  # else it was one too many, and reset
            try:
                (self._whole or self).data_received(data)
            except Exception:  # as the loop does for a defect there; here it would keep the server from ever closing
                log.exception("what a connection sent first could not be answered")
                transport.abort()

    def _close(self) -> None:
        if closing.close(self._transport, self._server.state.connections):
            self.connection_lost(None)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - it is over in any case
        self._asked = self._checked = None
        self._forget()

    def pause_writing(self) -> None:
        """Its reader did not take the whole of an answer."""
        self._hand_over().pause_writing()

    def shutdown(self) -> None:
        """Called by the server when it stops. A request may be on its way."""
        self._alarm.cancel()
        self._alarm = self._server.loop.call_later(DirectProtocol.idle_linger_seconds, self._close_if_idle)

    # --- requests ------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        server = self._server
        if self._asked is not None:
            self._hand_over().data_received(data)
            return
        if server.gate.draining:
            self.closes = True
        now, checked = monotonic(), None
        outcome: HotOutcome = self._hot.answer(data, self, server.state.default_headers, now, self)
        if outcome is FOR_ROUTER:
            outcome, checked = plain_answer(server.gate, data, self, server.state, now, self)
        if isinstance(outcome, bytes):  # what `_write` does, without a call
            self._answered_at = now
            self._transport.write(outcome)
            if self.closes:
                self._end()
        elif outcome is WAITING:
            self._asked, self._checked = data, checked
        else:
            self._hand_over().go_on(data, checked)

    def told(self, make: Callable[[], HotOutcome]) -> bool:
        """The request that waited can be answered now, or goes to the router path. False: nobody is left to answer."""
        if self._whole is not None:
            return self._whole.told(make)
        asked = self._asked
        if asked is None or self._transport.is_closing():
            return False
        self._answer_asked(asked, make)
        return True

    def _answer_asked(self, asked: bytes, make: Callable[[], HotOutcome]) -> None:
        if self._server.gate.draining:
            self.closes = True
        try:
            outcome, checked = make(), self._checked
            if outcome is FOR_ROUTER and checked is None:
                outcome, checked = plain_answer(self._server.gate, asked, self, self._server.state, monotonic(), self)
        except Exception:  # as the loop does for a defect in `data_received`
            log.exception("a request that waited could not be answered")
            self._transport.close()
            return
        if outcome is WAITING:
            self._checked = checked
            return
        self._asked = self._checked = None
        if isinstance(outcome, bytes):
            self._write(outcome, monotonic())
        else:
            self._hand_over().go_on(asked, checked)

    def _write(self, answer: bytes, now: float) -> None:
        self._answered_at = now
        self._transport.write(answer)
        if self.closes:
            self._end()

    def _end(self) -> None:
        """The last answer is written."""
        if self._whole is not None:
            self._whole.close_after_answer()
        else:
            self._close()

    # --- its end -------------------------------------------------------------------------------------------------

    def _hand_over(self, *, was_let_in: bool = True) -> DirectProtocol:
        """The protocol that goes on with the connection, and with the request that waits."""
        self._forget()
        whole = self._whole = self._server.make()
        self._transport.set_write_buffer_limits()
        self._transport.set_protocol(whole)
        age_left = self._old_at - monotonic() if self._old_at else None
        silent_since = self._opened_at if not self._answered_at else None
        whole.take_over(self, self._asked, self._checked, age_left, silent_since, was_let_in=was_let_in)
        whole.connection_made(self._transport)
        if self._answered_at:
            whole.was_answered(self._answered_at)
        if self._server.gate.draining:
            whole.shutdown()
        return whole

    def _forget(self) -> None:
        self._alarm.cancel()
        if self._aging is not None:
            self._aging.cancel()
        self._server.state.connections.discard(self)

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
