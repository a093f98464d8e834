"""uvicorn's HTTP/1.1 protocol with limits on what a request may cost, and errors in the form of contract 10.

uvicorn limits neither the size of headers nor the time that they take to arrive.
"""

import asyncio
import re
import sys
from collections.abc import Callable
from time import monotonic
from typing import Any, Protocol
from urllib.parse import unquote

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from service.base import closing
from service.edge.admission import limits
from service.edge.connection.deadlines import Deadlines, lifetime
from service.edge.connection.pipelining import END_OF_HEAD, HoldingFlow
from service.edge.hints import of_parser_error
from service.edge.hot.wire import whole_answer
from service.http.head import new_request_id
from service.http.reply import Reply

_ABSOLUTE = re.compile(rb"https?://[^/?#]", re.IGNORECASE)
_ENCODED_SLASH = re.compile("%2f", re.IGNORECASE)
_METHOD = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}(?= )")


class Application(Protocol):
    """What the protocol asks of the application that it serves."""

    most_connections: int
    connection_age: float  # seconds, after which a connection closes with its next answer; 0: never

    def rejected(self, code: str) -> None:
        """Counts a request that never reached the application."""
        ...

    def refusal(self, code: str, request_id: str, address: str | None, detail: str | None = None) -> Reply:
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


def decode_path(raw: bytes) -> str:
    """Returns the decoded path of a request. An encoded slash stays encoded: it is data, and separates no segments
    (RFC 3986, 2.2)."""
    return "%2F".join(map(unquote, _ENCODED_SLASH.split(raw.decode("ascii"))))


class RequestRefused(Exception):  # noqa: N818 - raised inside the parser's callbacks to stop it
    """Stops the parser. The request is refused with the error code that this carries."""


class LimitedProtocol(HttpToolsProtocol):
    """One connection, from its first byte to its last; the server makes it. It owns its flow and its deadlines.

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
        self._in_head = False
        self._received: list[tuple[bytes, bytes]] = []  # its headers
        self._other_method: str | None = None  # its method, if the parser does not know it and reads OPTIONS instead
        self._head_bytes = 0  # of its head, from reads that did not complete it
        self._fed = 0  # bytes since the start of the read in which it began: at least the size of its head
        self._answered_directly = False  # in this read, as soon as its head was complete
        self._reason = "bad_request"  # what it is refused with if the parser stops
        # the connection
        self._is_one_too_many = False
        self._is_old = False
        self._is_over = False  # its end, which may linger, is another protocol's
        self._silent_since: float | None = None  # monotonic seconds; None: since it has this protocol
        self._advice: str | None = None  # on the request that the parser refused
        self._refusal: str | None = None  # the error code that it ends with
        self._turn: asyncio.Handle | None = None  # the coming turn of the loop that goes on with held requests
        self._earlier: RequestResponseCycle | None = None  # what is under way if the newest request waits for it

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
        if self._earlier is not None:  # uvicorn tells the newest alone, which never begins now, and would keep this
            self._earlier.disconnected = True
            self._earlier.message_event.set()
            self.cycle.on_response = lambda: None
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
        if not self._is_over and closing.close(self.transport, self.connections):
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
        end = data.find(END_OF_HEAD)
        if (end < 0 or end + len(END_OF_HEAD) == len(data)) and not self._must_wait():
            self._parse(data)
            return
        self.flow.hold(data)
        self._go_on()

    def _must_wait(self) -> bool:
        """Whether a request is under way that does not wait for its own body."""
        return bool(self.pipeline) if self._in_message else not self._is_idle()

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
                self._take(self.flow.next_head())

    def _take(self, data: bytes) -> None:
        """Looks at `data`, which was held."""
        self._parse(data)

    def _parse(self, data: bytes) -> None:
        """To the parser, with at most the rest of one request and the head of another."""
        if not self._in_message and not data.startswith((b"GET ", b"HEAD ")):
            data = self._with_known_method(data)
        self._fed = self._fed + len(data) if self._in_message else len(data)
        self._answered_directly = False
        super().data_received(data)
        if self._refusal is not None:
            return
        if self._in_head:
            # what precedes an empty line belongs to earlier requests
            self._head_bytes += len(data) - (data.rfind(END_OF_HEAD) + len(END_OF_HEAD) if END_OF_HEAD in data else 0)
            if self._head_bytes > limits.MOST_HEAD_BYTES:
                self._refuse("headers_too_large")
                return
        if self._in_message or (not self._answered_directly and self._is_idle()):
            self._deadlines.await_request()

    def _with_known_method(self, data: bytes) -> bytes:
        """The parser knows some methods only; what it does not know is refused in the order of contract 1 too."""
        match = _METHOD.match(data)
        if match is None:
            return data
        self._other_method = match[0].decode()
        return b"OPTIONS" + data[match.end() :]

    # --- parser callbacks ----------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        # uvicorn's own beginning, which makes a scope, waits until it is known that one is needed
        self.url = b""
        self._received = []
        self._in_message = self._in_head = True
        self._head_bytes = 0

    def on_url(self, url: bytes) -> None:
        self.url += url
        if len(self.url) > limits.MOST_URL_BYTES:
            raise self._stop("uri_too_long")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # trailers, behind a body, are of no use to anybody
            self._received.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self._in_head = False
        received = self._received
        if len(received) > limits.MOST_HEADERS or (self._fed > limits.MOST_HEADER_BYTES and self._is_too_large()):
            raise self._stop("headers_too_large")
        if self._is_one_too_many:
            raise self._stop("unavailable")
        if self._answer_parsed():
            self._answered_directly = True
            return
        if self.url[:1] != b"/" and not _ABSOLUTE.match(self.url):
            raise self._stop("bad_request")  # the authority form is for proxies; the absolute one RFC 9112 asks for
        self._begin_in_uvicorn()
        self._earlier = self.cycle if self.cycle is not None and not self.cycle.response_complete else None
        super().on_headers_complete()
        self.cycle.transport = self._answering  # type: ignore[assignment]  # that is all it uses
        if b"%" in self.scope["raw_path"]:
            self.scope["path"] = decode_path(self.scope["raw_path"])
        if self._other_method is not None:
            self.scope["method"], self._other_method = self._other_method, None
        if self._is_old or self.parser.should_upgrade():
            self.cycle.keep_alive = False  # what follows an upgrade is not HTTP

    def _answer_parsed(self) -> bool:
        """Whether the request whose head is complete was answered here and now, without the application."""
        return False

    def _is_too_large(self) -> bool:
        return sum(len(name) + len(value) for name, value in self._received) > limits.MOST_HEADER_BYTES

    def _begin_in_uvicorn(self) -> None:
        url = self.url
        super().on_message_begin()
        self.url = url
        for name, value in self._received:
            super().on_header(name, value)

    def on_message_complete(self) -> None:
        if not self._answered_directly:
            super().on_message_complete()
        self._in_message = False
        self._deadlines.arrived()

    def on_response_complete(self) -> None:
        self._earlier = None
        if self._is_over:
            self.server_state.total_requests += 1
            return
        super().on_response_complete()
        if self.flow.held and self._turn is None:
            self._turn = self.loop.call_soon(self._go_on)
        # the cycle is that of the newest request: the refusal comes after all that were in order
        if self._refusal is not None and self._is_idle() and not self.transport.is_closing():
            self._write_refusal()

    def _stop(self, code: str) -> RequestRefused:
        """Remembers why, since the parser reports only that a callback failed."""
        self._reason = code
        return RequestRefused(code)

    # --- refusals ------------------------------------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's text is not the contract's
        reason, self._reason = self._reason, "bad_request"
        # uvicorn calls this where it handles the parser's error, whose text it does not hand on
        self._advice = of_parser_error(str(sys.exc_info()[1]))
        self._refuse(reason)

    def _unsupported_upgrade_warning(self) -> None:
        """Logged per request, it would fill the log."""

    def _refuse(self, code: str) -> None:
        self._refusal = code
        self._deadlines.arrived()
        self._end()  # nothing after a refused request is answered
        self.app.rejected(code)
        if self._is_idle() or self.cycle.disconnected:
            self._write_refusal()
        else:
            self.flow.pause_reading()  # an earlier request is under way: its answer goes first

    def _write_refusal(self) -> None:
        request_id = new_request_id().decode()
        address = self.client[0] if self.client else None
        reply = self.app.refusal(self._refusal or "bad_request", request_id, address, self._advice)
        behind = ((b"x-request-id", request_id.encode()), (b"connection", b"close"))
        self.transport.write(whole_answer(reply, behind, self.server_state.default_headers))
        closing.linger(self.transport, self.connections)
        self._part()

    # --- deadlines -----------------------------------------------------------------------------------------------

    def _late(self) -> None:
        """No request has arrived in time, or not the whole of it."""
        if self.transport.is_closing():
            return
        if self._in_head:
            self._refuse("request_timeout")
        elif self._awaits_body():
            # the application hears that its client has gone, and what it answers to that goes nowhere
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self._refuse("request_timeout")
        else:
            self._close()  # silent, or sending a body long refused: there is nothing to answer

    def _awaits_body(self) -> bool:
        """Whether the request that is arriving is under way, alone, and has no answer yet."""
        return self._in_message and not self.pipeline and not self._is_idle() and not self.cycle.response_started

    def _close_if_unused(self) -> None:
        """Long after the last direct answer. A request that reached the application has uvicorn's own deadline."""
        is_used = self._in_message or not self._is_idle() or self.timeout_keep_alive_task is not None
        if not is_used and not self.transport.is_closing():
            self._close()

    def timeout_keep_alive_handler(self) -> None:
        self._close()

    # --- draining ------------------------------------------------------------------------------------------------

    def shutdown(self) -> None:
        """Called by the server when it stops: what is under way is answered, then the connection is closed."""
        if self.cycle is None or self.cycle.response_complete:
            self.loop.call_later(self.idle_linger_seconds, self._close_if_idle)
        else:
            self.cycle.keep_alive = False

    def _close_if_idle(self) -> None:
        if self.transport.is_closing() or self._in_head:
            return
        if self._is_idle() and not self.flow.held:
            self._close()
        elif self.cycle is None or self.cycle.response_complete:
            self.loop.call_later(self.idle_linger_seconds, self._close_if_idle)
        else:
            self.cycle.keep_alive = False
