"""uvicorn's HTTP/1.1 protocol with limits on what a request may cost, and errors in the form of contract 10.

uvicorn has no limit on the size of headers and none on the time that they take to arrive.
"""

import asyncio
import re
from typing import Any, Protocol

from service.edge.admission import limits
from service.edge.connection.deadlines import reset
from service.edge.connection.pipelining import OrderlyProtocol
from service.edge.hot.wire import last_answer
from service.http.head import new_request_id
from service.http.reply import Reply

# How long what a refused client still sends is thrown away: closing at once would reset the connection, and its
# answer with it.
_REFUSED_LINGER_SECONDS = 1.0
_ABSOLUTE = re.compile(rb"https?://[^/?#]", re.IGNORECASE)
_METHOD = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}(?= )")


class Application(Protocol):
    """What the protocol asks of the application that it serves. `rejected` counts what never reached it; `refusal` is
    the answer to that, for one of the codes below."""

    most_connections: int

    def rejected(self, code: str) -> None: ...

    def refusal(self, code: str, request_id: str) -> Reply: ...


class RequestRefused(Exception):  # noqa: N818 - raised inside the parser's callbacks to stop it
    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class LimitedProtocol(OrderlyProtocol):
    """One connection. Refuses with `bad_request`, `uri_too_long`, `headers_too_large`, `request_timeout` and
    `unavailable`."""

    # A connection that is idle when draining begins may have a request on its way; closing it at once would lose that.
    idle_linger_seconds = 1.0

    app: Application

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._refusal: str | None = None
        self._is_one_too_many = False
        self._direct = False
        self._head_bytes = 0
        self._other_method: str | None = None
        self._answered = False
        self._fed = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        over = len(self.connections) - self.app.most_connections
        if over > 0:
            self._make_room(over)

    def _make_room(self, over: int) -> None:
        """There are so many connections too many, this one included."""
        self._is_one_too_many = True
        if over > limits.MOST_TURNED_AWAY:
            self.app.rejected("unavailable")
            reset(self.transport)

    # --- arrival -------------------------------------------------------------------------------------------------

    def _parse(self, data: bytes) -> None:
        if not self._in_message and not data.startswith((b"GET ", b"HEAD ")):
            data = self._with_known_method(data)
        self._fed = self._fed + len(data) if self._in_message else len(data)
        self._answered = False
        super()._parse(data)
        if self._refusal is not None:
            return
        if self._in_head:
            # what precedes an empty line belongs to earlier requests
            self._head_bytes += len(data) - (data.rfind(b"\r\n\r\n") + 4 if b"\r\n\r\n" in data else 0)
            if self._head_bytes > limits.MOST_HEAD_BYTES:
                self._refuse("headers_too_large")
                return
        if self._alarm is None and (self._in_message or (not self._answered and self._is_idle())):
            self._arm()

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
        self._received: list[tuple[bytes, bytes]] = []
        self._in_message = self._in_head = True
        self._direct = False
        self._head_bytes = 0

    def on_url(self, url: bytes) -> None:
        self.url += url
        if len(self.url) > limits.MOST_URL_BYTES:
            raise self._stop("uri_too_long")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # what comes behind a body is of no use to anybody
            self._received.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self._in_head = False
        received = self._received
        if len(received) > limits.MOST_HEADERS or (self._fed > limits.MOST_HEADER_BYTES and self._is_too_large()):
            raise self._stop("headers_too_large")
        if self._is_one_too_many:
            raise self._stop("unavailable")
        if self._answer_parsed():
            self._direct = self._answered = True
            return
        if self.url[:1] != b"/" and not _ABSOLUTE.match(self.url):
            raise self._stop("bad_request")  # the authority form is for proxies; the absolute one RFC 9112 asks for
        self._begin_ordinarily()
        super().on_headers_complete()
        if self._other_method is not None:
            self.scope["method"], self._other_method = self._other_method, None
        if self.parser.should_upgrade():
            self.cycle.keep_alive = False  # answered as HTTP, then closed: what follows is not HTTP

    def _answer_parsed(self) -> bool:
        """Whether the request whose head is complete was answered here and now, without the application."""
        return False

    def _is_too_large(self) -> bool:
        return sum(len(name) + len(value) for name, value in self._received) > limits.MOST_HEADER_BYTES

    def _begin_ordinarily(self) -> None:
        url = self.url
        super().on_message_begin()
        self.url = url
        for name, value in self._received:
            super().on_header(name, value)

    def on_message_complete(self) -> None:
        if not self._direct:
            super().on_message_complete()
        self._in_message = False
        self._disarm()

    def _stop(self, code: str) -> RequestRefused:
        """Remembers why, since the parser reports only that a callback failed."""
        self._reason = code
        return RequestRefused(code)

    # --- refusals ------------------------------------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's text is not the contract's
        reason, self._reason = self._reason, "bad_request"
        self._refuse(reason)

    _reason = "bad_request"

    def _unsupported_upgrade_warning(self) -> None:
        """Said per request, it would fill the log."""

    def _refuse(self, code: str) -> None:
        self._refusal = code
        self._disarm()
        self._end()  # nothing after a refused request is answered
        self.app.rejected(code)
        if self._is_idle() or self.cycle.disconnected:
            self._write_refusal()
        else:
            self.flow.pause_reading()  # an earlier request is under way: its answer goes first

    def _go_on_later(self) -> None:
        super()._go_on_later()
        # the cycle is that of the newest request: the refusal comes after all that were in order
        if self._refusal is not None and self._is_idle() and not self.transport.is_closing():
            self._write_refusal()

    def _write_refusal(self) -> None:
        request_id = new_request_id().decode()
        reply = self.app.refusal(self._refusal or "bad_request", request_id)
        self._unset_keepalive_if_required()
        self.flow.resume_reading()
        self.transport.write(last_answer(reply, request_id, self.server_state.default_headers))
        self.transport.write_eof()
        self.loop.call_later(_REFUSED_LINGER_SECONDS, self._close)

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
        if self._is_idle() and not self._held:
            self._close()
        elif self.cycle is None or self.cycle.response_complete:
            self.loop.call_later(self.idle_linger_seconds, self._close_if_idle)
        else:
            self.cycle.keep_alive = False
