"""Reads requests with httptools: heads within limits, targets of every form, offers of other protocols."""

import re
from typing import Any, NoReturn, Protocol

import httptools

from service.connection import limits
from service.connection.learned_heads import as_head
from service.request.request import decode_path
from service.request.response import Header
from service.request.suggestions import NO_TARGET, hint_for_other_protocol, hint_for_parser_error

_ABSOLUTE = re.compile(rb"https?://[^/?#]+", re.IGNORECASE)
_NAME = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}"
_METHOD = re.compile(_NAME + b"(?= )")
_CUT_METHOD = re.compile(_NAME + b" ?")  # the byte after the space tells another protocol from a method of its name
_TUNNEL = b"CONNECT"


class RequestRefused(Exception):  # noqa: N818 - a refusal is an answer
    """The request is refused with the error code `code`; `advice` is a more specific hint, if there is one."""

    def __init__(self, code: str, advice: str | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.advice = advice


class Reader(Protocol):
    """The interface that the parser calls."""

    is_over_limit: bool  # it is over the limit: its first request is refused once the head has arrived

    def begin(self) -> None:
        """Called when the request can begin: without a body, with its first bytes, or if its sender waits."""
        ...

    def body_read(self, body: bytes) -> None: ...

    def message_read(self) -> None:
        """Called when the request has arrived completely."""
        ...


class RequestParser:
    """The state of the arriving request of a connection. Its `reader` handles the parts."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._http = self._new()
        self.in_message = False
        self.is_arriving = False  # its head, or the first chunk of a body, is arriving: it has not begun
        self.expects = False  # "100 Continue", before its body
        self.body_left = 0  # remaining bytes of its body, if its length was sent
        self.tail = b""  # its last bytes: the end of a head may be cut
        self.url = b""
        self.headers: list[Header] = []
        self._path = self._query = b""
        self._in_head = False
        self._other_method: str | None = None  # its method, if httptools does not know it and reads OPTIONS instead
        self._fed = 0  # its bytes
        self._method = b""  # the beginning of its method, if that is cut
        self._has_offer = False  # of another protocol
        self._refused: RequestRefused | None = None  # raised in httptools, which reports only a failed callback

    def _new(self) -> Any:
        made = httptools.HttpRequestParser(self)
        made.set_dangerous_leniencies(lenient_data_after_close=True)  # the connection closes when it has answered
        return made

    def end(self) -> None:
        """Stops reading.

        It and httptools' parser refer to each other: without this, both would wait for the garbage collector.
        """
        self._http = None

    @property
    def is_tunnel(self) -> bool:
        return bool(self._http.get_method() == _TUNNEL)

    @property
    def keeps_connection(self) -> bool:
        """Whether the client may send another request on its connection."""
        return bool(self._http.get_http_version() != "1.0" and self._http.should_keep_alive())

    def feed(self, data: bytes) -> None:
        """Reads bytes of one request. Raises RequestRefused, after which no more can be read."""
        if self._method or not self.in_message:
            data, self._method = self._method + data if self._method else data.lstrip(b"\r\n"), b""
            if not data.startswith((b"GET ", b"HEAD ")):
                advice = hint_for_other_protocol(data)
                if advice is not None:
                    raise RequestRefused("bad_request", advice)
                data = self._with_known_method(data)
        self._fed = self._fed + len(data) if self.in_message else len(data)
        self._feed(data)
        self.tail = (self.tail + data)[-3:] if self.in_message else b""
        most = limits.MOST_HEAD_BYTES + (0 if self._in_head else limits.MOST_TRAILER_BYTES)
        if self.is_arriving and self._fed > most:
            raise RequestRefused("headers_too_large")

    def _with_known_method(self, data: bytes) -> bytes:
        """Replaces a method that httptools does not know, so that it is refused in the order of contract 1.

        A cut method waits for the first byte of the target.
        """
        if _CUT_METHOD.fullmatch(data):
            self._method = data
            self.on_message_begin()
            return b""
        match = _METHOD.match(data)
        if match is None or match[0] == _TUNNEL:  # whose target httptools accepts with this method only
            return data
        self._other_method = match[0].decode()
        return b"OPTIONS" + data[match.end() :]

    def _feed(self, data: bytes) -> None:
        """Feeds bytes to httptools.

        After an offer of another protocol it would skip the body, and parse it as a request. So it reads the head again
        without the offer, which is ignored (RFC 9110, 7.8).
        """
        self._has_offer = False
        self._feed_once(data)
        if self._has_offer:
            method, version = self._http.get_method(), self._http.get_http_version().encode()
            headers = [header for header in self.headers if header[0] != b"upgrade"]
            self._http = self._new()
            self._feed_once(as_head(self.url, headers, method, version))

    def _feed_once(self, data: bytes) -> None:
        try:
            self._http.feed_data(data)
        except httptools.HttpParserUpgrade:
            """An offer, or a tunnel."""
        except httptools.HttpParserError as error:
            if self._refused is None and isinstance(error, httptools.HttpParserCallbackError):
                raise  # a defect
            raise self._refused or RequestRefused("bad_request", hint_for_parser_error(str(error))) from None

    def scope(self) -> dict[str, Any]:
        """Returns the ASGI scope of the request."""
        raw = self._path
        path = decode_path(raw) if raw[:1] == b"/" else raw.decode()
        method, self._other_method = self._other_method, None
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": self._http.get_http_version(),
            "method": method or self._http.get_method().decode(),
            "scheme": "http",
            "root_path": "",
            "path": path,
            "raw_path": raw,
            "query_string": self._query,
            "headers": self.headers,
        }

    # --- callbacks of httptools ----------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self.url, self.headers = b"", []
        self.in_message = self.is_arriving = self._in_head = True
        self.body_left = 0

    def on_url(self, url: bytes) -> None:
        self.url += url
        if len(self.url) > limits.MOST_URL_BYTES:
            self._refuse("uri_too_long")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # trailers, after a body, are ignored
            self.headers.append((name.lower(), value.strip(b" \t")))  # RFC 9110, 5.5: not a part of the value

    def on_headers_complete(self) -> None:
        self._in_head = False
        headers = self.headers
        if len(headers) > limits.MOST_HEADERS or (self._fed > limits.MOST_HEADER_BYTES and self._is_too_large()):
            self._refuse("headers_too_large")
        if self.url[:1] != b"/" and not self.is_tunnel:
            self._read_target()
        self._split_target()
        if self._reader.is_over_limit:
            self._refuse("unavailable")
        self._has_offer = self._http.should_upgrade() and not self.is_tunnel
        if self._has_offer:
            return
        self.body_left = sum(int(value) for name, value in headers if name == b"content-length")
        is_chunked = any(name == b"transfer-encoding" for name, _ in headers)
        self.expects = (is_chunked or self.body_left > 0) and any(name == b"expect" for name, _ in headers)
        # else it begins with its first chunk, or its end: an empty chunked body is none
        if self.is_tunnel or self.expects or self.body_left:
            self._begin()

    def _is_too_large(self) -> bool:
        return sum(len(name) + len(value) for name, value in self.headers) > limits.MOST_HEADER_BYTES

    def _read_target(self) -> None:
        """Reads the target.

        By RFC 9112, 3.2, a server accepts the absolute form, too, and OPTIONS may be about the whole server.
        """
        absolute = _ABSOLUTE.match(self.url)
        if absolute is not None:
            rest = self.url[absolute.end() :]
            self.url = rest if rest[:1] == b"/" else b"/" + rest
        elif self.url != b"*" or self._http.get_method() != b"OPTIONS":
            self._refuse("bad_request", NO_TARGET)

    def _split_target(self) -> None:
        target = self.url
        self._path, self._query = target, b""
        if target[:1] == b"/":
            try:
                parsed = httptools.parse_url(target)
            except httptools.HttpParserInvalidURLError:
                self._refuse("bad_request")
            self._path, self._query = parsed.path, parsed.query or b""
        if not self._path.isascii():
            self._refuse("bad_request")

    def _refuse(self, code: str, advice: str | None = None) -> NoReturn:
        self._refused = RequestRefused(code, advice)
        raise self._refused

    def on_body(self, body: bytes) -> None:
        if self.is_arriving:
            self._begin()
        self.body_left = max(0, self.body_left - len(body))
        self._reader.body_read(body)

    def on_message_complete(self) -> None:
        if self.is_tunnel or self._has_offer:
            return
        self.in_message = False
        if self.is_arriving:
            self.headers = [header for header in self.headers if header[0] != b"transfer-encoding"]
            self._begin()
        self._reader.message_read()

    def _begin(self) -> None:
        self.is_arriving = False
        self._reader.begin()
