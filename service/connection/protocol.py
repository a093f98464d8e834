"""uvicorn's HTTP/1.1 protocol with limits on what a request may cost, and errors in the form of contract 10.

uvicorn limits neither the size of headers nor the time that they take to arrive.
"""

import asyncio
import sys
from collections.abc import Callable
from time import monotonic
from typing import Any, Protocol

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from service.base import closing
from service.connection import limits
from service.connection.deadlines import Deadlines, lifetime
from service.connection.parsing import RequestParsing
from service.connection.pipelining import END_OF_HEAD, HoldingFlow
from service.request.hints import of_other_protocol, of_parser_error
from service.request.request import new_request_id
from service.request.response import STATUS_LINES, Response, lines_of


class Application(Protocol):
    """What the protocol asks of the application that it serves."""

    most_connections: int
    connection_age: float  # seconds, after which a connection closes with its next answer; 0: never

    def rejected(self, code: str) -> None:
        """Counts a request that never reached the application."""
        ...

    def refusal(self, code: str, request_id: bytes, address: str | None, detail: str | None = None) -> Response:
        """The answer to such a request from `address`; `code` is one that `LimitedProtocol` refuses with."""
        ...


class _Answering:
    """What uvicorn writes an answer to: the transport, but that closing it is left to the connection."""

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self.write: Callable[[bytes], None] = transport.write
        self.is_closing = transport.is_closing
        self.close = close

    def end(self) -> None:
        """The connection is lost, or another protocol's: nothing is written any more, and nothing closed."""
        self.write = lambda _: None
        self.is_closing = lambda: True
        self.close = lambda: None


class LimitedProtocol(RequestParsing):
    """One connection, from its first byte to its last; the server makes it. It owns its flow and its deadlines.

    An answer that begins before the whole request has arrived closes the connection: the next request might be read
    from the middle of this one. A request whose rest cannot be read has one answer, a refusal.

    Refuses with `bad_request`, `uri_too_long`, `headers_too_large`, `request_timeout` and `unavailable`.
    """

    # A connection that is idle when draining begins may have a request on its way; closing it at once would lose that.
    idle_linger_seconds = 1.0

    app: Application
    # made with the transport, in `connection_made`
    flow: HoldingFlow
    _deadlines: Deadlines

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # the request that is arriving
        self._in_message = False
        self._is_arriving = False  # its head, or the first chunk of a body: it has not begun
        self._expects = False  # "100 Continue", before its body
        self._keeps = False  # the connection, unless the end of the request is in doubt
        self._in_doubt = False  # whether it is, when its answer begins
        self._body_left = 0  # bytes of its body, if that is announced in bytes
        self._tail = b""  # its last bytes that were read: the end of a head may be cut
        # the connection
        self._is_one_too_many = False
        self._is_old = False
        self._is_over = False  # its end, which may linger, is another protocol's
        self._silent_since: float | None = None  # monotonic seconds; None: since it has this protocol
        self._refusal: str | None = None  # the error code that it ends with
        self._to_start: tuple[RequestResponseCycle, Any] | None = None  # whose body is held
        self._turn: asyncio.Handle | None = None  # the coming turn of the loop that goes on with held requests

    # --- the transport -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = HoldingFlow(transport)
        self._answering = _Answering(transport, self._close)
        self._deadlines = Deadlines(transport, self.loop, self.timeout_keep_alive, self._late, self._close_if_unused)
        self._deadlines.await_request(self._silent_since)
        if self.app.connection_age:
            left = self._left_to_live()
            if left > 0:
                self._deadlines.await_age(left, self._grow_old)
            else:
                self._grow_old()  # before what arrived is looked at
        self._count()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        self._deadlines.end()
        super().connection_lost(exc)
        self._answering.end()
        self._unset_keepalive_if_required()  # uvicorn leaves it, and this with it, if the connection was reset

    def eof_received(self) -> None:
        self._close()  # the loop would close it, and then wait for a reader without a deadline

    def pause_writing(self) -> None:
        super().pause_writing()
        self._deadlines.await_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._deadlines.reader_took()

    def _left_to_live(self) -> float:
        """Seconds, after which the connection is old."""
        return lifetime(self.app.connection_age)

    def _grow_old(self) -> None:
        """The next answer is the last."""
        self._is_old = True

    def _count(self) -> None:
        over = len(self.connections) - self.app.most_connections
        if over > 0:
            self._make_room(over)

    def _make_room(self, over: int) -> None:
        """There are `over` connections too many, this one included."""
        self._is_one_too_many = True
        if over > limits.MOST_TURNED_AWAY:
            self.app.rejected("unavailable")
            closing.reset(self.transport)

    def _is_idle(self) -> bool:
        return self.cycle is None or bool(self.cycle.response_complete)

    def _end(self) -> None:
        """Nothing that arrives, or has arrived, is looked at any more."""
        self.flow.end()
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None

    def _close(self) -> None:
        if self._is_over:
            return
        if self._in_doubt:  # the rest of the request may be arriving
            closing.linger(self.transport, self.connections)
        elif not closing.close(self.transport, self.connections):
            return
        self._part()

    def _part(self) -> None:
        """The connection is another protocol's."""
        self._is_over = True
        self.connection_lost(ConnectionAbortedError())

    # --- arrival -------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self.flow.held is not None:
            self.flow.hold(data)
            return
        size, end = self._size_of_rest(data), data.find(END_OF_HEAD)
        if size < len(data):
            self._parse(data[:size])
            data = data[size:]
        elif (end < 0 or end + len(END_OF_HEAD) == len(data)) and not self._must_wait():
            self._parse(data)
            return
        self.flow.hold(data)
        self._go_on()

    def _size_of_rest(self, data: bytes) -> int:
        """How much of `data` belongs to the request that is arriving, where an end of head would not show that."""
        if self._body_left:
            return min(self._body_left, len(data))
        end = (self._tail + data[:3]).find(END_OF_HEAD)
        return end + len(END_OF_HEAD) - len(self._tail) if end >= 0 else len(data)

    def _must_wait(self) -> bool:
        """Whether a request is under way that has arrived."""
        return not self._in_message and not self._is_idle()

    def _go_on(self) -> None:
        """Takes what is held, head by head, until a request has to be waited for or others should have their turn."""
        self._turn = None
        until = monotonic() + limits.TURN_SECONDS
        while self.flow.held and not self._must_wait():
            if self.transport.is_closing():
                self._end()
            elif monotonic() > until:
                self._turn = self.loop.call_soon(self._go_on)
                return
            else:
                self._take(self.flow.next_head(self._body_left))
        self._start()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Not before all that is held of its body is read: whether it is whole decides about the connection."""
        self._to_start = cycle, app
        if not (self._in_message and self.flow.held):
            self._start()

    def _start(self) -> None:
        if self._to_start is not None and not self.cycle.disconnected:
            super()._start_asgi_task(*self._to_start)
        self._to_start = None

    def _take(self, data: bytes) -> None:
        """Looks at `data`, which was held."""
        self._parse(data)

    def _parse(self, data: bytes) -> None:
        """To the parser, with bytes of one request."""
        if self._method or not self._in_message:
            data, self._method = self._method + data if self._method else data.lstrip(b"\r\n"), b""
            if not data.startswith((b"GET ", b"HEAD ")):
                self._advice = of_other_protocol(data)
                if self._advice is not None:
                    self._refuse("bad_request")
                    return
                data = self._with_known_method(data)
        self._fed = self._fed + len(data) if self._in_message else len(data)
        self._feed(data)
        if self._refusal is not None:
            return
        self._tail = (self._tail + data)[-3:] if self._in_message else b""
        if self._is_arriving and self._fed > limits.MOST_HEAD_BYTES + (
            0 if self._in_head else limits.MOST_TRAILER_BYTES
        ):
            self._refuse("headers_too_large")
            return
        if self._in_message or self._is_idle():
            self._deadlines.await_request()

    # --- parser callbacks ----------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_message = self._is_arriving = True
        self._body_left = 0

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        if self._is_one_too_many:
            raise self._stop("unavailable")
        if self._has_offer:
            return
        self._body_left = sum(int(value) for name, value in self._received if name == b"content-length")
        is_chunked = any(name == b"transfer-encoding" for name, _ in self._received)
        self._expects = (is_chunked or self._body_left > 0) and any(name == b"expect" for name, _ in self._received)
        # else it begins with its first chunk, or its end: a chunked body may be empty, which is none
        if self._is_tunnel or self._expects or self._body_left:
            self._begin()

    def on_body(self, body: bytes) -> None:
        if self._is_arriving:
            self._begin()
        self._body_left = max(0, self._body_left - len(body))
        super().on_body(body)

    def _begin(self) -> None:
        """The task of the request starts in the coming turn."""
        self._is_arriving = False
        self._begin_in_uvicorn()
        self.cycle.transport = self._answering  # type: ignore[assignment]  # that is all it uses
        self._keeps = self.cycle.keep_alive
        self._keep_or_close()

    def _keep_or_close(self) -> None:
        """Says whether the connection is kept, unless the answer has said so already. Who waits for "100 Continue" and
        gets another answer may send the body, or not."""
        cycle = self.cycle
        if not cycle.response_started:
            self._in_doubt = self._in_message or (self._expects and cycle.waiting_for_100_continue)
            cycle.keep_alive = self._keeps and not self._in_doubt and not self._is_old

    def on_message_complete(self) -> None:
        if self._is_tunnel:
            self._end()  # what follows may not be HTTP
            return
        if self._has_offer:
            return
        self._in_message = False
        if self._is_arriving:
            self._received = [header for header in self._received if header[0] != b"transfer-encoding"]
            self._begin()
        super().on_message_complete()
        self._keep_or_close()
        self._start()
        self._deadlines.arrived()

    def on_response_complete(self) -> None:
        if self._is_over:
            self.server_state.total_requests += 1
            return
        super().on_response_complete()
        if self.flow.held and self._turn is None:
            self._turn = self.loop.call_soon(self._go_on)

    # --- refusals ------------------------------------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's text is not the contract's
        reason, self._reason = self._reason, "bad_request"
        # uvicorn calls this where it handles the parser's error, whose text it does not hand on
        self._advice = self._advice or of_parser_error(str(sys.exc_info()[1]))
        self._refuse(reason)

    def _refuse(self, code: str) -> None:
        """Those before it are answered already."""
        self._refusal = code
        self._deadlines.arrived()
        self._end()  # nothing after a refused request is answered
        self.app.rejected(code)
        if self._in_message and not self._is_arriving and not self.cycle.response_started:
            self.cycle.disconnected = True  # this is the only answer to the request: its own goes nowhere
            self.cycle.message_event.set()
        if not self._is_idle() and not self.cycle.disconnected:
            return
        request_id = new_request_id()
        address = self.client[0] if self.client else None
        response = self.app.refusal(code, request_id, address, self._advice)
        lines, body = response.whole(request_id)
        behind = lines_of((*self.server_state.default_headers,))
        tail = lines_of(((b"x-request-id", request_id), (b"connection", b"close")))
        self.transport.write(b"".join((STATUS_LINES[response.status], behind, lines, tail, b"\r\n", body)))
        closing.linger(self.transport, self.connections)
        self._part()

    # --- deadlines -----------------------------------------------------------------------------------------------

    def _late(self) -> None:
        """No request has arrived in time, or not the whole of it."""
        if self.transport.is_closing():
            return
        if self._in_message and (self._is_arriving or not self.cycle.response_started):
            self._refuse("request_timeout")
        else:
            self._close()  # silent, or still sending what is answered: there is nothing to answer

    def _close_if_unused(self) -> None:
        """Long after the pipeline's last answer. A request that reached the application has uvicorn's own deadline."""
        is_used = self._in_message or not self._is_idle() or self.timeout_keep_alive_task is not None
        if not is_used and not self.transport.is_closing():
            self._close()

    def timeout_keep_alive_handler(self) -> None:
        self._close()

    # --- draining ------------------------------------------------------------------------------------------------

    def shutdown(self) -> None:
        """Called by the server when it stops: what is under way is answered, then the connection is closed."""
        self._is_old = True
        if self.cycle is None or self.cycle.response_complete:
            self.loop.call_later(self.idle_linger_seconds, self._close_if_idle)
        else:
            self.cycle.keep_alive = False

    def _close_if_idle(self) -> None:
        if self.transport.is_closing() or self._is_arriving:
            return
        if self._is_idle() and not self.flow.held:
            self._close()
        else:
            self.shutdown()
