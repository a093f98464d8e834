"""A request at the application, and the path of its answer: uvicorn's ASGI cycle over one of our connections."""

import asyncio
import logging
from typing import Any, Protocol

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from service.connection.accepting import Address
from service.connection.door import Door
from service.connection.request_parser import RequestParser
from service.request.request import Request
from service.request.response import SCOPE_KEY

_uvicorn = logging.getLogger("uvicorn.error")
_EXPECTS = b"100-continue"


class Transport(Protocol):
    """The interface of a connection to a cycle and its flow."""

    def write(self, data: bytes) -> None: ...

    def is_closing(self) -> bool: ...

    def close(self) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def answered(self) -> None:
        """Called when the answer is complete."""
        ...


class Exchange:
    """One request that the parser has begun to read; its connection owns it. `checked`: the request as checked by the
    pipeline, if it came from there.

    `in_doubt`: the rest of the request may still arrive when its answer begins, so that it closes the connection.
    """

    def __init__(
        self, transport: Transport, door: Door, parser: RequestParser, address: Address, checked: Request | None
    ) -> None:
        scope: dict[str, Any] = {**parser.scope(), "client": address, "server": door.address, "state": {}}
        if checked is not None:
            scope[SCOPE_KEY] = checked
        self.in_doubt = False
        self._parser = parser
        self._door = door
        self._keeps = parser.keeps_connection
        self._started = False
        self._flow = FlowControl(transport)  # type: ignore[arg-type]  # which only pauses and resumes reading
        self._cycle = RequestResponseCycle(
            scope=scope,  # type: ignore[arg-type]
            transport=transport,  # type: ignore[arg-type]  # which only writes and closes
            flow=self._flow,
            logger=_uvicorn,
            access_logger=_uvicorn,
            access_log=False,
            default_headers=door.state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=any(name == b"expect" and value.lower() == _EXPECTS for name, value in parser.headers),
            keep_alive=True,
            on_response=transport.answered,
        )

    @property
    def is_under_way(self) -> bool:
        return not self._cycle.response_complete

    @property
    def is_answered(self) -> bool:
        """Whether its answer has begun."""
        return bool(self._cycle.response_started)

    @property
    def reads(self) -> bool:
        """Whether it needs more of its body."""
        return not self._flow.read_paused

    def keep_or_close(self, *, closes: bool) -> None:
        """Decides whether the connection is kept, unless the answer has decided already. A client that waits for "100
        Continue" and gets another answer may send the body, or not.
        """
        cycle, parser = self._cycle, self._parser
        if not cycle.response_started:
            self.in_doubt = parser.in_message or (parser.expects and cycle.waiting_for_100_continue)
            cycle.keep_alive = self._keeps and not closes and not self.in_doubt

    def start(self) -> None:
        """Hands the request to the application, once."""
        if self._started or self._cycle.disconnected:
            return
        self._started = True
        task, tasks = asyncio.create_task(self._cycle.run_asgi(self._door.app)), self._door.state.tasks
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def body_read(self, body: bytes) -> None:
        cycle = self._cycle
        if cycle.response_complete:
            return
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self._flow.pause_reading()
        cycle.message_event.set()

    def message_read(self) -> None:
        if not self._cycle.response_complete:
            self._cycle.more_body = False
            self._cycle.message_event.set()

    def block(self) -> None:
        """Called when the client accepts no more of the answer for now."""
        self._flow.pause_writing()

    def unblock(self) -> None:
        self._flow.resume_writing()

    def close_behind(self) -> None:
        """Makes the answer, begun or not, the last of its connection."""
        self._cycle.keep_alive = False

    def disconnect(self) -> None:
        """Reports to the application that its client has disconnected."""
        if not self._cycle.response_complete:
            self._cycle.disconnected = True
        self._cycle.message_event.set()
        self._flow.resume_writing()
