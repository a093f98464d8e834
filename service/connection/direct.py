"""A partner's connection: plain requests are answered by the pipeline, the others go to the parser.

While a request waits for its key, the shared cache, the warehouse or the rates, what arrives behind it is held, so that
answers keep the order of their requests.
"""

import asyncio
import logging
from collections.abc import Callable
from enum import Enum
from functools import partial
from time import monotonic
from typing import Any, Final, Protocol, assert_never

import msgspec
from uvicorn.server import ServerState

from service.connection import heads
from service.connection.door import Door
from service.connection.parse import plain_request
from service.connection.protocol import LimitedProtocol
from service.request.errors import problem
from service.request.request import Request
from service.request.resolve import DISPATCH
from service.request.response import SCOPE_KEY, Response

log = logging.getLogger("forecast.access")


class Unanswered(Enum):
    """What becomes of a request that was not answered at once."""

    WAITING = "a task answers it; the connection gets the answer later"
    DISPATCHED = "the application answers it"


WAITING: Final = Unanswered.WAITING
DISPATCHED: Final = Unanswered.DISPATCHED
Outcome = bytes | Unanswered
# Writes the answer, when it is there.
MakeOutcome = Callable[[], Outcome]


class Holder(Protocol):
    """The connection on which a request waits. It reads no other request meanwhile."""

    def finish(self, make: MakeOutcome) -> bool:
        """Writes the answer that waited. False: nobody is left to answer, and `make` was not called."""
        ...


class Caller:
    """What a connection knows of its other end."""

    __slots__ = ("address", "arrived_at", "closes", "reader")

    def __init__(self, reader: heads.HeadReader, address: str | None) -> None:
        self.address = address
        self.reader = reader
        self.closes = False
        self.arrived_at = 0.0


class Arrived(msgspec.Struct):
    """What another protocol received and could not answer, and what it found out about that."""

    data: bytes
    checked: Request | None


class TakenOver(msgspec.Struct):
    """How far another protocol got with a connection.

    `asked` is the head of a request that waits, if one does, and `checked` what was found out about it. `rest` of an
    answer is not written yet, which has told its reader whether it `is_last`. `age_left`, in seconds, if connections
    may grow old. `silent_since`: when it began, if it was never answered; `answered_at`: when it was last, else 0; in
    monotonic seconds. `is_one_too_many`: it was when it began; those that came later do not count against it.
    """

    caller: Caller
    asked: bytes | None
    checked: Request | None
    arrived: Arrived | None
    rest: bytes
    is_last: bool
    age_left: float | None
    silent_since: float | None
    answered_at: float
    is_one_too_many: bool


class DirectProtocol(LimitedProtocol):
    """One connection of a partner; the worker's server makes it. It ends with its transport."""

    app: Door

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._fields = self.app.fields
        self._caller: Caller | None = None  # made with the transport
        self._taken: TakenOver | None = None  # from another protocol, until this one has the transport
        self._made: MakeOutcome | None = None  # of what waited, before it had the transport
        self._stops = False  # with the server, which stopped before it had the transport
        self._asked: bytes | None = None  # the head of the request that waits
        self._checked: Request | None = None  # the same, with what the checks found out about it

    def take_over(self, taken: TakenOver) -> None:
        """Called before `connection_made`. When what waits is over, `finish` is called, here too."""
        self._taken = taken
        self._caller, self._asked, self._checked = taken.caller, taken.asked, taken.checked
        self._silent_since, self._is_one_too_many = taken.silent_since, taken.is_one_too_many

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self._caller is None:
            address = self.client[0] if self.client is not None else None
            self._caller = Caller(heads.HeadReader(self._fields, address or ""), address)
        if self._taken is None:
            return
        try:
            self._begin_with(transport, self._taken)
        except Exception:  # the loop ends no connection for a defect in its beginning
            log.exception("a connection that was handed over could not go on")
            transport.abort()

    def _begin_with(self, transport: asyncio.Transport, taken: TakenOver) -> None:
        """Goes on where another protocol ended."""
        self._taken = None
        self.connections.discard(taken.caller)  # as this is among them from now on
        if taken.rest:
            transport.set_write_buffer_limits(high=0)  # what its reader does not take now, it takes slowly
            transport.write(taken.rest)
            transport.set_write_buffer_limits()
            if taken.is_last:
                self.close_after_answer()
                return
        if self._asked is not None:
            self._deadlines.arrived()
        if taken.answered_at:
            self._deadlines.answered(taken.answered_at)
        if self.app.draining or self._stops:
            self.shutdown()
        if taken.arrived is not None and self._asked is not None:
            self.data_received(taken.arrived.data)
        elif taken.arrived is not None:
            self._go_on_with(taken.arrived)
        if self._made is not None:
            make, self._made = self._made, None
            self.finish(make)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._asked = None
        # it may be the connection that was handed over, which refers to this: both would wait for the garbage collector
        self._caller = None

    def shutdown(self) -> None:
        if self._taken is None:
            super().shutdown()
        else:
            self._stops = True  # when it has its transport

    def _go_on_with(self, arrived: Arrived) -> None:
        self._checked = arrived.checked
        super().data_received(arrived.data)

    def close_after_answer(self) -> None:
        """The last answer is written: nothing behind it is answered."""
        self._end()
        self._close()

    def data_received(self, data: bytes) -> None:
        # first of all: most requests need none of the checks that follow
        may_answer = self.flow.held is None and self._asked is None and not self._in_message
        if not (may_answer and self._answer_directly(data)):
            super().data_received(data)

    def _count(self) -> None:
        if self._taken is None:
            super()._count()

    def _left_to_live(self) -> float:
        age_left = self._taken.age_left if self._taken is not None else None
        return super()._left_to_live() if age_left is None else max(0.0, age_left)

    def _grow_old(self) -> None:
        super()._grow_old()
        if self._caller is not None:
            self._caller.closes = True

    def _take(self, data: bytes) -> None:
        if self._in_message or not self._answer_directly(data):
            self._parse(data)

    def _is_idle(self) -> bool:
        return self._asked is None and super()._is_idle()

    def _answer_directly(self, head: bytes) -> bool:
        """Whether the request was answered, or waits."""
        caller, cycle, now = self._caller, self.cycle, monotonic()
        self._checked = None
        if (
            caller is None
            or (cycle is not None and not cycle.response_complete)  # what came before is answered first
            or self.flow.write_paused
            or self._is_one_too_many
        ):
            return False
        if self.app.draining:
            caller.closes = True
        outcome, self._checked = plain_answer(self.app, head, caller, self.server_state, now, self)
        match outcome:
            case bytes():
                self._write(outcome, caller, now)
            case Unanswered.WAITING:
                self._asked, caller.arrived_at = head, now
                self._deadlines.arrived()
            case Unanswered.DISPATCHED:
                return False
            case _:
                assert_never(outcome)
        if self.timeout_keep_alive_task is not None:
            self._unset_keepalive_if_required()
        return True

    def _begin_in_uvicorn(self) -> None:
        super()._begin_in_uvicorn()
        if self._checked is not None:
            self.scope[SCOPE_KEY], self._checked = self._checked, None  # type: ignore[literal-required]

    def _write(self, answer: bytes, caller: Caller | None, now: float) -> None:
        self.transport.write(answer)
        self._deadlines.answered(now)
        if caller is not None and caller.closes:
            self.close_after_answer()

    def finish(self, make: MakeOutcome) -> bool:
        """The request that waited can be answered now, or is dispatched. False: nobody is left to answer.

        A defect closes the connection, as the loop does for a defect in `data_received`. No deadline is running while a
        request waits, so it would otherwise stay open without an answer.
        """
        if self._taken is not None:
            self._made = make
            return True
        asked, self._asked = self._asked, None
        if asked is None or self.transport.is_closing():
            return False
        try:
            self._answer_asked(asked, make)
        except Exception:
            log.exception("a request that waited could not be answered")
            self._close()
        return True

    def _answer_asked(self, asked: bytes, make: MakeOutcome) -> None:
        caller = self._caller
        if caller is not None and self.app.draining:
            caller.closes = True
        outcome = make()
        match outcome:
            case bytes():
                self._checked = None
                self._write(outcome, caller, monotonic())
            case _:
                self._parse(asked)
        if self.flow.held:
            self._go_on()


def plain_answer(
    door: Door, data: bytes, caller: Caller, state: ServerState, began: float, holder: Holder
) -> tuple[Outcome, Request | None]:
    """Answers a plain request by the pipeline. If it has to wait, the `holder` gets the answer. `began`: when it
    arrived, in monotonic seconds. Also returns the request, if it was plain."""
    pipeline = door.pipeline
    request = plain_request(data, caller.reader, door.resolver, began, caller.address, headers=pipeline.traces)
    if request is None:
        return DISPATCHED, None
    request.closes = caller.closes = caller.closes or request.closes
    pipeline.begin(request)
    outcome = pipeline.run(request)
    if isinstance(outcome, Response):
        return _written(door, request, outcome, caller, state), request
    outcome.add_done_callback(partial(_finish, door, request, caller, state, holder))
    return WAITING, request


def _written(door: Door, request: Request, response: Response, caller: Caller, state: ServerState) -> Outcome:
    if response is DISPATCH:
        return DISPATCHED
    request.closes = caller.closes  # the connection may have grown old
    if caller.reader.news is not None:  # now it is known whether its caller is a stranger
        caller.reader.learn(stranger=request.key is None)
    head, body = door.pipeline.finish(request, response, door.date_lines(state.default_headers))
    return head + body


def _finish(
    door: Door, request: Request, caller: Caller, state: ServerState, holder: Holder, task: "asyncio.Task[Response]"
) -> None:
    response = problem("unavailable") if task.cancelled() else task.result()
    is_there = holder.finish(lambda: _written(door, request, response, caller, state))
    if not is_there and response.status == 401:  # a scan counts, also one that hangs up
        _written(door, request, response, caller, state)
