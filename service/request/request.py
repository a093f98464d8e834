"""One request: as it was sent, and with the results of the pipeline's steps."""

import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any
from urllib.parse import unquote

import msgspec

from service.base.tracing import Trace
from service.cache.entry import Found, Tier
from service.keys.record import ApiKey
from service.request.allowance import Allowance
from service.request.response import SCOPE_KEY, Header
from service.request.targets import Resolution, Route, Target

NO_AREA = "none"
MOST_REQUEST_ID = 64
REQUEST_ID = rb"[A-Za-z0-9._-]{1,%d}" % MOST_REQUEST_ID
_REQUEST_ID = re.compile(REQUEST_ID)
_ENCODED_SLASH = re.compile("%2f", re.IGNORECASE)
METHODS = ("GET", "HEAD")

# RFC 9110 7.2: a host name or address, and a port; other characters are invalid
_HOST = re.compile(rb"[A-Za-z0-9._~%!$&'()*+,;=-]*(:[0-9]*)?|\[[0-9A-Fa-f:.]+\](:[0-9]*)?")

Fault = tuple[str, str | None]


class Counted(msgspec.Struct, frozen=True):
    """The number of requests in a batch with this outcome."""

    number: int
    status: int
    outcome: str
    tier: Tier | None  # None: not found


class Request(msgspec.Struct, gc=False):
    """A request on its way through the pipeline. Each step reads the results of earlier ones, and adds its own.

    Times are in monotonic seconds. Header values are None if they were not sent; several of one name are a list.
    """

    # as it was sent
    began: float
    request_id: bytes  # the caller's, if it is usable
    method: str = "GET"
    sent_path: str = "/"  # decoded
    sent_query: bytes | None = None  # None: it is in the request line
    presented: bytes | None = None  # the API key
    accept_encoding: bytes | None = None
    if_none_match: bytes | None = None
    address: str | None = None  # of the peer
    closes: bool = False  # the connection, with the answer
    line: bytes = b""  # the request line, if it was read as a plain one
    target: Target | None = None  # the target of this line, as resolved before in the current release
    route: Route | None = None  # None: no endpoint has this path
    area: str = NO_AREA  # that it counts under
    head: bytes = b""  # all of it, likewise
    if_match: bytes | None = None
    sent_headers: Sequence[Header] | None = None  # names in lower case; None: they are in the head
    fault: Fault | None = None  # of its syntax: an error code, and what to do
    # results of the steps
    key: ApiKey | None = None  # once it is verified
    is_test: bool = False  # the key is a test key, which must not be answered from live data
    key_id: str | None = None  # also if the caller proved to own an expired or revoked one
    is_checked: bool = False  # it has passed authentication, routing and admission
    allowance: Allowance | None = None  # its allowance, if its area is metered
    resolution: Resolution | None = None  # as resolved in one release
    found: Found | None = None  # the entry that answers it
    # outcome, besides its status
    outcome: str = "answered"
    shown_query: str | None = None  # canonical
    counted: tuple[Counted, ...] = ()  # if it counts as several
    trace: Trace | None = None

    @property
    def path(self) -> str:
        """Path without a slash at its end."""
        sent = self.sent_path
        return sent[:-1] if len(sent) > 1 and sent.endswith("/") else sent

    @property
    def query(self) -> bytes:
        """Query string, as it was sent."""
        if self.sent_query is None:
            self.sent_query = self.line.partition(b"?")[2].rpartition(b" ")[0]
        return self.sent_query

    @property
    def headers(self) -> Sequence[Header]:
        """Header lines, with names in lower case."""
        if self.sent_headers is None:
            lines = (line.partition(b": ") for line in self.head.split(b"\r\n")[1:-2])
            self.sent_headers = [(name.lower(), value) for name, _, value in lines]
        return self.sent_headers


def valid_host(host: bytes) -> bool:
    return _HOST.fullmatch(host) is not None


def valid_request_id(sent: bytes) -> bool:
    return _REQUEST_ID.fullmatch(sent) is not None


def _request_ids() -> Iterator[bytes]:
    """Yields ids: random per process, with a counter. As unique as random ids, at a thirtieth of their cost."""
    process = secrets.token_hex(10).encode()
    last = [b"%03x" % number for number in range(4096)]
    for number in count(secrets.randbits(32)):
        first = b"%b%09x" % (process, number)
        for low in last:
            yield first + low


# A unique id of 32 characters.
new_request_id: Callable[[], bytes] = _request_ids().__next__


def read_headers(
    headers: Sequence[Header],
    *,
    began: float,
    method: str,
    version: str,
    sent_path: str,
    query: bytes,
    address: str | None = None,
) -> Request:
    """Reads a request with these `headers`, whose names are in lower case."""
    request = Request(began, b"", method, sent_path, query, address=address, sent_headers=headers)
    request_ids, keys, hosts = [], [], []
    has_body = False
    for name, value in headers:
        if name == b"x-api-key":
            keys.append(value)
        elif name == b"host":
            hosts.append(value)
        elif name == b"accept-encoding":
            request.accept_encoding = _joined(request.accept_encoding, value)
        elif name == b"if-none-match":
            request.if_none_match = _joined(request.if_none_match, value)
        elif name == b"if-match":
            request.if_match = _joined(request.if_match, value)
        elif name == b"x-request-id":
            request_ids.append(value)
        elif name == b"transfer-encoding" or (name == b"content-length" and value.strip(b" \t0") != b""):
            has_body = True
    usable = len(request_ids) == 1 and valid_request_id(request_ids[0])
    request.request_id = request_ids[0] if usable else new_request_id()
    request.presented = keys[0] if keys else None
    request.fault = _fault(method, version, hosts, keys, has_body=has_body)
    return request


def decode_path(raw: bytes) -> str:
    """Returns the decoded path of a request. An encoded slash stays encoded: it is data, and separates no segments
    (RFC 3986, 2.2)."""
    return "%2F".join(map(unquote, _ENCODED_SLASH.split(raw.decode("ascii"))))


def read_scope(scope: Any, began: float) -> Request:
    """Reads the request of an ASGI scope. A server has decoded its path, which may have made separators: the raw path
    takes precedence, if there is one.
    """
    client = scope["client"]
    raw = (scope.get("raw_path") or b"").partition(b"?")[0]  # Litestar's test client leaves the query in it
    return read_headers(
        scope["headers"],
        began=began,
        method=scope["method"],
        version=scope["http_version"],
        sent_path=decode_path(raw) if raw[:1] == b"/" and raw.isascii() else scope["path"],
        query=scope["query_string"],
        address=client[0] if client else None,
    )


def request_of(scope: Any) -> Request:
    request: Request = scope[SCOPE_KEY]
    return request


def key_of(request: Request) -> ApiKey:
    """Returns the key that the pipeline has verified."""
    if request.key is None:
        raise LookupError("a request without a key reached a handler")
    return request.key


def _joined(before: bytes | None, value: bytes) -> bytes:
    return value if before is None else before + b"," + value


def _fault(method: str, version: str, hosts: list[bytes], keys: list[bytes], *, has_body: bool) -> Fault | None:
    if version not in ("1.0", "1.1"):
        return "bad_request", "Only HTTP/1.0 and HTTP/1.1 are spoken here."
    if len(hosts) != 1 and not (not hosts and version == "1.0"):
        return "bad_request", "Send the Host header, once."
    if hosts and not valid_host(hosts[0]):
        return "bad_request", "The Host header is not a host name or address."
    # other methods get a 405 instead: the sender must change the method first
    if has_body and method in METHODS:
        return "body_not_allowed", None
    if len(keys) > 1:
        return "bad_request", "The x-api-key header was sent more than once. Send it once."
    return None
