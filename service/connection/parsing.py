"""Reads requests with uvicorn's parser: heads within limits, targets of every form, offers of other protocols."""

import re
from typing import Any
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.connection import limits
from service.connection.heads import as_head
from service.request.hints import NO_TARGET

_ABSOLUTE = re.compile(rb"https?://[^/?#]+", re.IGNORECASE)
_ENCODED_SLASH = re.compile("%2f", re.IGNORECASE)
_CUT_METHOD = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}")
_METHOD = re.compile(_CUT_METHOD.pattern + b"(?= )")
_TUNNEL = b"CONNECT"


def decode_path(raw: bytes) -> str:
    """Returns the decoded path of a request. An encoded slash stays encoded: it is data, and separates no segments
    (RFC 3986, 2.2)."""
    return "%2F".join(map(unquote, _ENCODED_SLASH.split(raw.decode("ascii"))))


class RequestRefused(Exception):  # noqa: N818 - raised inside the parser's callbacks to stop it
    """Stops the parser. The request is refused with the error code that this carries."""


class RequestParsing(HttpToolsProtocol):
    """What a connection has read of the request that is arriving. `LimitedProtocol` decides what becomes of it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_head = False
        self._received: list[tuple[bytes, bytes]] = []  # its headers
        self._other_method: str | None = None  # its method, if the parser does not know it and reads OPTIONS instead
        self._fed = 0  # its bytes
        self._method = b""  # what there is of it, if it is cut
        self._has_offer = False  # of another protocol
        self._reason = "bad_request"  # what it is refused with if the parser stops,
        self._advice: str | None = None  # and what is said of that

    def _feed(self, data: bytes) -> None:
        """To the parser. Behind an offer of another protocol it would skip the body, and read it as a request. So
        it reads the head again without the offer, which is ignored (RFC 9110, 7.8)."""
        self._has_offer = False
        super().data_received(data)
        if self._has_offer:
            method, version = self.parser.get_method(), self.parser.get_http_version().encode()
            headers = [header for header in self._received if header[0] != b"upgrade"]
            self.parser = httptools.HttpRequestParser(self)
            super().data_received(as_head(self.url, headers, method, version))

    def _with_known_method(self, data: bytes) -> bytes:
        """The parser knows some methods only; what it does not know is refused in the order of contract 1 too. A method
        that is cut waits for its rest."""
        if _CUT_METHOD.fullmatch(data):
            self._method = data
            self.on_message_begin()
            return b""
        match = _METHOD.match(data)
        if match is None or match[0] == _TUNNEL:  # whose target the parser takes with this method only
            return data
        self._other_method = match[0].decode()
        return b"OPTIONS" + data[match.end() :]

    @property
    def _is_tunnel(self) -> bool:
        return bool(self.parser.get_method() == _TUNNEL)

    def _should_upgrade(self) -> bool:
        return False

    def _unsupported_upgrade_warning(self) -> None:
        """Logged per request, it would fill the log."""

    def on_message_begin(self) -> None:
        # uvicorn's own beginning, which makes a scope, waits until it is known that one is needed
        self.url = b""
        self._received = []
        self._in_head = True

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
        if self.url[:1] != b"/" and not self._is_tunnel:
            self._read_target()
        self._has_offer = self.parser.should_upgrade() and not self._is_tunnel

    def _is_too_large(self) -> bool:
        return sum(len(name) + len(value) for name, value in self._received) > limits.MOST_HEADER_BYTES

    def _read_target(self) -> None:
        """RFC 9112, 3.2: a server takes the absolute form, too, and OPTIONS may be about the whole server."""
        absolute = _ABSOLUTE.match(self.url)
        if absolute is not None:
            rest = self.url[absolute.end() :]
            self.url = rest if rest[:1] == b"/" else b"/" + rest
        elif self.url != b"*" or self.parser.get_method() != b"OPTIONS":
            raise self._stop("bad_request", NO_TARGET)

    def _begin_in_uvicorn(self) -> None:
        """Its task starts in a later turn."""
        target = self.url
        super().on_message_begin()
        self.url = target if target[:1] == b"/" else b"/"  # uvicorn reads no other
        for name, value in self._received:
            super().on_header(name, value)
        super().on_headers_complete()
        if b"%" in self.scope["raw_path"]:
            self.scope["path"] = decode_path(self.scope["raw_path"])
        if self.url != target:
            self.scope["path"], self.scope["raw_path"] = target.decode("latin-1"), target
        if self._other_method is not None:
            self.scope["method"], self._other_method = self._other_method, None

    def _stop(self, code: str, advice: str | None = None) -> RequestRefused:
        """Remembers why, since the parser reports only that a callback failed."""
        self._reason, self._advice = code, advice
        return RequestRefused(code)
