"""What the edge found in a request's headers, handed to the handlers in the ASGI scope."""

import re
import secrets
from itertools import count
from typing import Any

import msgspec

from service.keys.record import ApiKey

SCOPE_KEY = "forecast.head"
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
MOST_REQUEST_ID = 64

# RFC 9110 7.2: a host name or address, and a port; what else is in it has no business here
_HOST = re.compile(rb"[A-Za-z0-9._~%!$&'()*+,;=-]*(:[0-9]*)?|\[[0-9A-Fa-f:.]+\](:[0-9]*)?")


class RequestHead(msgspec.Struct):
    """`api_keys`, `hosts`: as often as they were sent. `key` is there once it is verified, and `key_id` also where its
    owner proved to have an expired or revoked one; `limits` are fields that every answer to it carries.
    """

    request_id: str
    started: float
    api_keys: tuple[bytes, ...] = ()
    hosts: int = 0
    host: bytes | None = None
    has_body: bool = False
    accept_encoding: bytes = b""
    if_none_match: bytes = b""
    key_id: str | None = None
    key: ApiKey | None = None
    limits: tuple[tuple[bytes, bytes], ...] = ()


# Random for the process, counted within it: as unique as a random id, and a tenth of its cost.
_PROCESS = secrets.token_hex(10)
_numbers = count(secrets.randbits(32))


def valid_host(host: bytes) -> bool:
    return _HOST.fullmatch(host) is not None


def valid_request_id(sent: bytes) -> bool:
    return _REQUEST_ID.fullmatch(sent) is not None


def new_request_id() -> str:
    """32 characters that no other request has."""
    return f"{_PROCESS}{next(_numbers):012x}"


def read_head(headers: list[tuple[bytes, bytes]], started: float) -> RequestHead:
    """One pass over lower-case `headers`."""
    head = RequestHead("", started)
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
        elif name == b"x-request-id":
            request_ids.append(value)
        elif name == b"transfer-encoding" or (name == b"content-length" and value.strip(b" \t0") != b""):
            head.has_body = True
    usable = len(request_ids) == 1 and valid_request_id(request_ids[0])
    head.request_id = request_ids[0].decode() if usable else new_request_id()
    return head


def head_of(scope: Any) -> RequestHead:
    head: RequestHead = scope[SCOPE_KEY]
    return head
