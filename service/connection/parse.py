"""Reads the head of a plain request without the parser."""

import re

from service.connection import limits
from service.connection.learned_heads import CLOSE, HeaderValues, HeadReader
from service.request.request import Request, new_request_id
from service.request.resolve import Resolver

# A target in origin form, of characters that RFC 3986 allows there. Two slashes would begin an authority.
_LINE = re.compile(
    rb"(GET|HEAD) (/(?!/)[A-Za-z0-9._~!$&'()*+,;=:@/-]*)(?:\?([A-Za-z0-9._~!$&'()*+,;=:@%/?-]*))? HTTP/(1\.[01])"
)


def plain_request(head: bytes, reader: HeadReader, resolver: Resolver, began: float) -> Request | None:
    """Returns the request, or None if `head` is anything but one whole head of plain lines."""
    end = head.find(b"\r\n")
    values = reader.read(head, end)
    if values is None:
        return None
    line = head[:end]
    target = resolver.find(line)
    if target is None or values.host is None:
        return _read_line(head, line, values, reader.origin, resolver, began)
    return Request(
        began,
        values.request_id or new_request_id(),
        "GET",
        target.sent_path,
        None,
        values.presented,
        values.accept_encoding,
        values.if_none_match,
        reader.origin,
        values.connection == CLOSE,
        line,
        target,
        target.route,
        target.area,
        head,
    )


def _read_line(
    head: bytes, line: bytes, values: HeaderValues, origin: str, resolver: Resolver, began: float
) -> Request | None:
    """Reads a request whose line is not cached."""
    found = plain_line(head, len(line))
    if found is None:
        return None
    method, path, query, version = found.groups()
    if values.host is None and version == b"1.1":
        return None
    if method != b"GET" or version != b"1.1":
        line = b"GET %b?%b HTTP/1.1" % (path, query) if query is not None else b"GET %b HTTP/1.1" % path
    target = resolver.find(line)
    request = Request(
        began,
        values.request_id or new_request_id(),
        method.decode(),
        path.decode(),
        query or b"",
        values.presented,
        values.accept_encoding,
        values.if_none_match,
        origin,
        version == b"1.0" or values.connection == CLOSE,
        line,
        target,
        head=head,
    )
    if target is not None:
        request.route, request.area = target.route, target.area
    return request


def plain_line(data: bytes, end: int) -> "re.Match[bytes] | None":
    """Returns the parts of a request line that ends there: method, path, query, version. None if it is not plain."""
    line = _LINE.fullmatch(data, 0, end)
    if line is None or line.end(3 if line[3] is not None else 2) > limits.MOST_URL_BYTES:
        return None
    return line
