"""A partner's connection: hot requests are answered directly (edge/hot), the others go to the parser.

While a request waits for its key, the shared cache, the warehouse or the rates, what arrives behind it is held, so that
answers keep the order of their requests.
"""

import asyncio
import logging
from collections.abc import Callable
from enum import Enum
from time import monotonic
from typing import Any, Final, Protocol, assert_never

import msgspec
from uvicorn.server import ServerState

from service.connection import heads
from service.connection.parse import plain_request
from service.connection.pipelining import END_OF_HEAD
from service.connection.protocol import LimitedProtocol
from service.request.request import Request
from service.request.resolve import DISPATCH
from service.request.response import SCOPE_KEY, Header, Response, lines_of

log = logging.getLogger("forecast.access")


class Unanswered(Enum):
    """What becomes of a request that was not answered at once."""

    WAITING = "a store was asked; the holder is told later"
    FOR_ROUTER = "the application has to answer"


WAITING: Final = Unanswered.WAITING
FOR_ROUTER: Final = Unanswered.FOR_ROUTER
HotOutcome = bytes | Unanswered


class Holder(Protocol):
    """The connection on which a request waits. It asks nothing else meanwhile."""

    def told(self, make: Callable[[], HotOutcome]) -> bool: ...


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
    """One connection of a partner to the gate; the worker's server makes it. It ends with its transport."""

    app: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._fields: heads.Fields | None = self.app.fields
        self._caller: Caller | None = None  # made with the transport, if there are direct answers
        self._taken: TakenOver | None = None  # from another protocol, until this one has the transport
        self._told: Callable[[], HotOutcome] | None = None  # of what waited, before it had the transport
        self._stops = False  # with the server, which stopped before it had the transport
        self._asked: bytes | None = None  # the head of the request that waits
        self._was_looked_at = False  # the head that goes to the parser; looking again would not change the outcome
        self._checked: Request | None = None  # the same, with what the checks found out about it

    def take_over(self, taken: TakenOver) -> None:
        """Called before `connection_made`. When what waits is over, `told` is called, here too."""
        self._taken = taken
        self._caller, self._asked, self._checked = taken.caller, taken.asked, taken.checked
        self._silent_since, self._is_one_too_many = taken.silent_since, taken.is_one_too_many

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self._fields is not None and self._caller is None:
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
        if self._told is not None:
            make, self._told = self._told, None
            self.told(make)

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
        self._checked, self._was_looked_at = arrived.checked, arrived.data.endswith(END_OF_HEAD)
        super().data_received(arrived.data)

    def close_after_answer(self) -> None:
        """The last answer is written: nothing behind it is answered."""
        self._end()
        self._close()

    def data_received(self, data: bytes) -> None:
        # first of all: a hot request needs none of the checks that follow
        if self.flow.held is None and self._asked is None and not self._in_message:
            if self._answer_directly(data, self):
                return
            self._was_looked_at = data.endswith(END_OF_HEAD)
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
        if not self._in_message:
            if self._answer_directly(data, self):
                return
            self._was_looked_at = data.endswith(END_OF_HEAD)
        self._parse(data)

    def _is_idle(self) -> bool:
        return self._asked is None and super()._is_idle()

    def _answer_parsed(self) -> bool:
        return (
            not self._was_looked_at
            and not self.transport.is_closing()
            and self.parser.get_method() == b"GET"
            and self.parser.get_http_version() == "1.1"
            and self._answer_directly(heads.as_head(self.url, self._received))
        )

    def _answer_directly(self, head: bytes, holder: Holder | None = None) -> bool:
        """Whether the request was answered. With a `holder`, also whether it waits, and the holder will be told."""
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
        if holder is None:
            return False
        outcome, self._checked = plain_answer(self.app, head, caller, self.server_state, now, holder)
        match outcome:
            case bytes():
                self._write(outcome, caller, now)
            case Unanswered.WAITING:
                self._asked, caller.arrived_at = head, now
                self._deadlines.arrived()
            case Unanswered.FOR_ROUTER:
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

    @property
    def dates(self) -> list[Header]:
        return self.server_state.default_headers

    def told(self, make: Callable[[], HotOutcome]) -> bool:
        """The request that waited can be answered now, or goes to the router path. False: nobody is left to answer.

        A defect closes the connection, as the loop does for a defect in `data_received`. No deadline is running while a
        request waits, so it would otherwise stay open without an answer.
        """
        if self._taken is not None:
            self._told = make
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

    def _answer_asked(self, asked: bytes, make: Callable[[], HotOutcome]) -> None:
        caller = self._caller
        if caller is not None and self.app.draining:
            caller.closes = True
        outcome = make()
        match outcome:
            case bytes():
                self._checked = None
                self._write(outcome, caller, monotonic())
            case Unanswered.WAITING:
                self._asked = asked
            case Unanswered.FOR_ROUTER:
                self._was_looked_at = True
                self._parse(asked)
            case _:
                assert_never(outcome)
        if self.flow.held:
            self._go_on()


def plain_answer(
    app: Any, data: bytes, caller: Caller, state: ServerState, began: float, holder: Holder
) -> tuple[HotOutcome, Request | None]:
    """The answer to a plain request; if it has to wait, the `holder` is told."""
    pipeline = app.pipeline
    request = plain_request(data, caller.reader, app.resolver, began, caller.address, headers=pipeline.traces)
    if request is None:
        return FOR_ROUTER, None
    request.closes = caller.closes = caller.closes or request.closes
    pipeline.begin(request)
    outcome = pipeline.run(request)

    def written(response: Response) -> HotOutcome:
        if response is DISPATCH:
            return FOR_ROUTER
        request.closes = caller.closes
        if caller.reader.news is not None:
            caller.reader.learn(stranger=request.key is None)
        head, body = pipeline.finish(request, response, lines_of(tuple(state.default_headers)))
        return bytes(head + body)

    def done(task: "asyncio.Task[Response]") -> None:
        response = task.result()
        if not holder.told(lambda: written(response)) and response.status == 401:
            written(response)

    if isinstance(outcome, Response):
        return written(outcome), request
    outcome.add_done_callback(done)
    return WAITING, request
