"""uvicorn's HTTP/1.1 protocol with limits on what a request's head may cost, and errors in the contract's form.

uvicorn has no limit on the size of headers and none on the time that they take to arrive.
"""

import asyncio
import re
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from service.edge import limits
from service.http.errors import problem
from service.http.head import new_request_id
from service.telemetry import REJECTED, Telemetry

# A connection that is idle when draining begins may have a request on its way; closing it at once would lose that.
_IDLE_LINGER_SECONDS = 1.0
# How long what a refused client still sends is thrown away: closing at once would reset the connection, and its
# answer with it.
_REFUSED_LINGER_SECONDS = 1.0
_ABSOLUTE = re.compile(rb"https?://[^/?#]", re.IGNORECASE)
_METHOD = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}(?= )")


class RequestRefused(Exception):  # noqa: N818 - raised inside the parser's callbacks to stop it
    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class EdgeProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._telemetry: Telemetry = self.app.telemetry
        self._in_message = False
        self._in_head = False
        self._head_bytes = 0
        self._header_bytes = 0
        self._other_method: str | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._refusal: str | None = None

    # --- arrival -------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refusal is not None:
            return  # nothing after a refused request is answered
        if not self._in_message and not data.startswith((b"GET ", b"HEAD ")):
            data = self._with_known_method(data)
        super().data_received(data)
        if self._refusal is not None:
            return
        if self._in_head:
            # what precedes an empty line belongs to earlier requests
            self._head_bytes += len(data) - (data.rfind(b"\r\n\r\n") + 4 if b"\r\n\r\n" in data else 0)
            if self._head_bytes > limits.MOST_HEAD_BYTES:
                self._refuse("headers_too_large")
                return
        if self._alarm is None and (self._in_message or self._is_idle()):
            self._arm()

    def _with_known_method(self, data: bytes) -> bytes:
        """The parser knows some methods only; what it does not know is refused in the contract's order all the same."""
        match = _METHOD.match(data)
        if match is None:
            return data
        self._other_method = match[0].decode()
        return b"OPTIONS" + data[match.end() :]

    def _is_idle(self) -> bool:
        return self.cycle is None or bool(self.cycle.response_complete)

    # --- parser callbacks ----------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_message = self._in_head = True
        self._head_bytes = self._header_bytes = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > limits.MOST_URL_BYTES:
            raise self._stop("uri_too_long")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_bytes += len(name) + len(value)
        if self._header_bytes > limits.MOST_HEADER_BYTES or len(self.headers) >= limits.MOST_HEADERS:
            raise self._stop("headers_too_large")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        if self.url[:1] != b"/" and not _ABSOLUTE.match(self.url):
            raise self._stop("bad_request")  # the authority form is for proxies; the absolute one RFC 9112 asks for
        super().on_headers_complete()
        if self._other_method is not None:
            self.scope["method"], self._other_method = self._other_method, None
        if self.parser.should_upgrade():
            self.cycle.keep_alive = False  # answered as HTTP, then closed: what follows is not HTTP

    def on_message_complete(self) -> None:
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
        self._telemetry.count(REJECTED, code)
        if self._is_idle():
            self._write_refusal()
        else:
            self.flow.pause_reading()  # an earlier request is under way: its answer goes first

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # the cycle is that of the newest request: the refusal comes after all that were in order
        if self._refusal is not None and self._is_idle() and not self.transport.is_closing():
            self._write_refusal()

    def _write_refusal(self) -> None:
        request_id = new_request_id()
        reply = problem(self._refusal or "bad_request", request_id)
        self.app.log_refusal(reply, request_id)
        lines = [STATUS_LINE[reply.status]]
        extra = (
            (b"x-request-id", request_id.encode()),
            (b"content-length", str(len(reply.body)).encode()),
            (b"connection", b"close"),
        )
        for name, value in (*self.server_state.default_headers, *reply.headers, *extra):
            lines.append(b"%s: %s\r\n" % (name, value))
        self._unset_keepalive_if_required()
        self.transport.write(b"".join([*lines, b"\r\n", reply.body]))
        self.transport.write_eof()
        self.loop.call_later(_REFUSED_LINGER_SECONDS, self.transport.close)

    # --- time ----------------------------------------------------------------------------------------------------

    def _arm(self) -> None:
        self._alarm = self.loop.call_later(limits.HEAD_SECONDS, self._late)

    def _disarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _late(self) -> None:
        self._alarm = None
        if self.transport.is_closing():
            return
        if self._in_head:
            self._refuse("request_timeout")
        else:
            self.transport.close()  # silent, or sending a body long refused: there is nothing to answer

    # --- draining ------------------------------------------------------------------------------------------------

    def shutdown(self) -> None:
        """Called by the server when it stops: what is under way is answered, then the connection is closed."""
        if self._is_idle():
            self.loop.call_later(_IDLE_LINGER_SECONDS, self._close_if_idle)
        else:
            self.cycle.keep_alive = False

    def _close_if_idle(self) -> None:
        if not self.transport.is_closing() and not self._in_head:
            if self._is_idle():
                self.transport.close()
            else:
                self.cycle.keep_alive = False
