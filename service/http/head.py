"""What the edge found in a request's headers, handed to the handlers in the ASGI scope."""

import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import msgspec

from service.base.tracing import Trace
from service.http.reading import Failure, ReadError, Reading
from service.keys.record import ApiKey
from service.keys.verdict import KeyVerdict
from service.quota.gcra import Decision
from service.quota.known import QuotaState

SCOPE_KEY = "forecast.head"
NO_AREA = "none"
MOST_REQUEST_ID = 64
REQUEST_ID = rb"[A-Za-z0-9._-]{1,%d}" % MOST_REQUEST_ID
_REQUEST_ID = re.compile(REQUEST_ID)

# RFC 9110 7.2: a host name or address, and a port; what else is in it has no business here
_HOST = re.compile(rb"[A-Za-z0-9._~%!$&'()*+,;=-]*(:[0-9]*)?|\[[0-9A-Fa-f:.]+\](:[0-9]*)?")


class RequestHead(msgspec.Struct):
    """What a request is, as it was sent, and then what the edge found out about it.

    `started`: in monotonic seconds. `api_keys`, `hosts`: as often as they were sent. `last`: of its connection, as far
    as the direct way knows. `path` has no slash at its end; `area` is what it counts under. `key` is there once it is
    verified, and `key_id` also where its owner proved to have an expired or revoked one; `limits` are fields that every
    answer to it carries, or `limits_after` gives those of an answer that takes so much off a quota. `refused_until`, in
    monotonic seconds: so long, whatever the key asks for in the area ends with the same error. `read`: what it means,
    if that is known, and `failed`: how its look-up in that release has failed. `trace`: if it is traced. `passed`:
    nothing is left to be checked.
    """

    request_id: str
    started: float
    method: str = "GET"
    version: str = "1.1"
    sent_path: str = "/"  # decoded
    query: bytes = b""
    address: str | None = None  # of the other end
    headers: Sequence[tuple[bytes, bytes]] = ()  # names in lower case
    api_keys: tuple[bytes, ...] = ()
    hosts: int = 0
    host: bytes | None = None
    has_body: bool = False
    last: bool = False
    accept_encoding: bytes = b""
    if_none_match: bytes = b""
    if_match: bytes | None = None  # the router path alone has it
    path: str = "/"
    area: str = NO_AREA
    verdict: KeyVerdict | None = None
    key_id: str | None = None
    key: ApiKey | None = None
    standing: QuotaState | None = None
    decision: Decision | None = None
    limits: tuple[tuple[bytes, bytes], ...] = ()
    limits_after: Callable[[int], tuple[tuple[bytes, bytes], ...]] | None = None
    refused_until: float = 0.0
    read: Reading | ReadError | None = None
    failed: Failure | None = None
    trace: Trace | None = None
    passed: bool = False

    @property
    def is_test(self) -> bool:
        """Whether the key is a test key, which must not be answered from live data."""
        return self.key is not None and self.key.test


def valid_host(host: bytes) -> bool:
    return _HOST.fullmatch(host) is not None


def valid_request_id(sent: bytes) -> bool:
    return _REQUEST_ID.fullmatch(sent) is not None


def _request_ids() -> Iterator[bytes]:
    """Random for the process, counted within it: as unique as a random id, at a thirtieth of its cost."""
    process = secrets.token_hex(10).encode()
    last = [b"%03x" % number for number in range(4096)]
    for number in count(secrets.randbits(32)):
        first = b"%b%09x" % (process, number)
        for low in last:
            yield first + low


# 32 characters that no other request has.
new_request_id: Callable[[], bytes] = _request_ids().__next__


def read_head(headers: Sequence[tuple[bytes, bytes]], started: float) -> RequestHead:
    """One pass over lower-case `headers`."""
    head = RequestHead("", started, headers=headers)
    request_ids: list[bytes] = []
    for name, value in headers:
        if name == b"x-api-key":
            head.api_keys = (*head.api_keys, value)
        elif name == b"host":
            head.hosts += 1
            head.host = value
        elif name == b"accept-encoding":
            head.accept_encoding = head.accept_encoding + b"," + value if head.accept_encoding else value
        elif name == b"if-none-match":
            head.if_none_match = head.if_none_match + b"," + value if head.if_none_match else value
        elif name == b"if-match":
            head.if_match = head.if_match + b"," + value if head.if_match is not None else value
        elif name == b"x-request-id":
            request_ids.append(value)
        elif name == b"transfer-encoding" or (name == b"content-length" and value.strip(b" \t0") != b""):
            head.has_body = True
    usable = len(request_ids) == 1 and valid_request_id(request_ids[0])
    head.request_id = (request_ids[0] if usable else new_request_id()).decode()
    return head


def head_in(scope: Any, started: float) -> RequestHead:
    """That of a request that came with an ASGI scope."""
    head, client = read_head(scope["headers"], started), scope["client"]
    head.method, head.version = scope["method"], scope["http_version"]
    head.sent_path, head.query = scope["path"], scope["query_string"]
    head.address = client[0] if client else None
    return head


def head_of(scope: Any) -> RequestHead:
    head: RequestHead = scope[SCOPE_KEY]
    return head


def caller(scope: Any) -> ApiKey:
    """The key that the edge verified."""
    key = head_of(scope).key
    if key is None:
        raise LookupError("a request came here without a key")
    return key
