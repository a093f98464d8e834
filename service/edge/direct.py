"""A connection whose requests are answered directly where they can be (hot.py); the others go to the parser.

While the shared cache or the rates are asked for the sake of a request, what arrives behind it is held, so that answers
keep the order of their requests.
"""

import asyncio
import logging
from collections.abc import Callable
from time import monotonic
from typing import Any

from service.edge import limits
from service.edge.hot import HotAnswers
from service.edge.remembered import Caller
from service.edge.timing import TimedProtocol, reset
from service.edge.waiting import Answer, Holder
from service.telemetry import REJECTED

log = logging.getLogger("forecast.access")


class DirectProtocol(TimedProtocol):
    """One connection."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._hot: HotAnswers | None = self.app.hot
        self._caller = Caller(self._hot.fields) if self._hot is not None else None
        self._held: list[bytes] | None = None
        self._refusal: str | None = None
        self._was_looked_at = False
        self._is_one_too_many = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        over = len(self.connections) - self.app.most_connections
        self._is_one_too_many = over > 0
        if over > limits.MOST_TURNED_AWAY:
            self.app.telemetry.count(REJECTED, "unavailable")
            reset(transport)

    def _is_idle(self) -> bool:
        return self._held is None and super()._is_idle()

    def data_received(self, data: bytes) -> None:
        if self._refusal is not None:
            return  # nothing after a refused request is answered
        if self._held is not None:
            self._held.append(data)
            self.flow.pause_reading()
            return
        if not self._in_message:
            if self._answer_directly(data, self):
                return
            # a whole head: looking at it again when it is parsed would not change the answer
            self._was_looked_at = 0 <= data.find(b"\r\n\r\n") == len(data) - 4
        self._parse(data)

    def _parse(self, data: bytes) -> None:
        """The ordinary way."""
        super().data_received(data)

    def _answer_directly(self, head: bytes, holder: Holder | None = None) -> bool:
        """Whether the request was answered here and now; or will be, if there is a `holder` to be told later."""
        hot, caller, cycle, now = self._hot, self._caller, self.cycle, monotonic()
        if (
            hot is None
            or caller is None
            or (cycle is not None and not cycle.response_complete)  # what came before is answered first
            or self.flow.write_paused
            or self.app.draining
            or self._is_one_too_many
        ):
            return False
        answer = hot.answer(head, caller, self.server_state.default_headers, now, holder)
        if answer is None:
            return False
        if answer == "later":
            self._held = [head]
        else:
            self.transport.write(answer)
            self._active_at = now
            if self._idle_alarm is None:
                self._watch_idle(self.timeout_keep_alive)
        if self._alarm is not None:
            self._disarm()
        if self.timeout_keep_alive_task is not None:
            self._unset_keepalive_if_required()
        return True

    def told(self, make: Callable[[], Answer]) -> None:
        """The first of what is held can be answered, or has to be in the ordinary way.

        After a defect the connection is closed, as the loop does when something arrives: no alarm is set meanwhile, and
        it would stay open without an answer.
        """
        try:
            self._go_on(make)
        except Exception:
            log.exception("a request that waited could not be answered")
            self._close()

    def _go_on(self, make: Callable[[], Answer]) -> None:
        held, self._held = self._held or [], None
        if self.transport.is_closing():
            return  # nobody is there to whom it would count
        answer = make() if not self.app.draining else None
        if answer == "later":
            self._held = held
            return
        if answer is not None:
            self.transport.write(answer)
            self._active_at = monotonic()
            if self._idle_alarm is None:
                self._watch_idle(self.timeout_keep_alive)
        else:
            self._was_looked_at = True
            self._parse(held[0])
        if len(held) > 1:
            self.flow.resume_reading()
            for data in held[1:]:
                self.data_received(data)
