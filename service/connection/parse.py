"""Reads the head of a plain request without the parser."""

import re

from service.connection import limits
from service.connection.learned_heads import CLOSE, HeadReader
from service.request.request import Request, new_request_id
from service.request.resolve import Resolver
from service.request.response import Header

# A target in origin form, of characters that RFC 3986 allows there. Two slashes would begin an authority.
_LINE = re.compile(
    rb"(GET|HEAD) (/(?!/)[A-Za-z0-9._~!$&'()*+,;=:@/-]*)(?:\?([A-Za-z0-9._~!$&'()*+,;=:@%/?-]*))? HTTP/(1\.[01])"
)


def plain_request(
    data: bytes, reader: HeadReader, resolver: Resolver, began: float, address: str | None, *, headers: bool
) -> Request | None:
    """Returns the request, or None if `data` is anything but one whole head of plain lines.

    `headers`: whether all headers are wanted, which is so at least where there is no key.
    """
    end = data.find(b"\r\n")
    usual = reader.usual
    values = reader.usually if usual and data[end:] == usual else reader.read(data, end)
    if values is None:
        return None
    line = data[:end]
    target = resolver.find(line)
    if target is None or values.host is None:
        return _read_line(data, line, reader, resolver, began, address, headers=headers)
    connection = values.connection
    request = Request(
        began,
        values.request_id or new_request_id(),
        "GET",
        target.sent_path,
        None,
        values.presented,
        values.accept_encoding,
        values.if_none_match,
        address,
        connection is not None and connection.lower() == CLOSE,
        line,
        target,
        target.route,
        target.area,
    )
    if headers or not values.presented:
        request.headers = _fields(data, end)
    return request


def _read_line(
    data: bytes,
    line: bytes,
    reader: HeadReader,
    resolver: Resolver,
    began: float,
    address: str | None,
    *,
    headers: bool,
) -> Request | None:
    """Reads a request whose line was not kept as it is."""
    found = plain_line(data, len(line))
    if found is None:
        return None
    method, path, query, version = found.groups()
    values = reader.read(data, len(line))
    if values is None or (values.host is None and version == b"1.1"):
        return None
    if method != b"GET" or version != b"1.1":
        line = b"GET %b?%b HTTP/1.1" % (path, query) if query is not None else b"GET %b HTTP/1.1" % path
    request = Request(
        began,
        values.request_id or new_request_id(),
        method.decode(),
        path.decode(),
        query or b"",
        values.presented,
        values.accept_encoding,
        values.if_none_match,
        address,
        version == b"1.0" or (values.connection is not None and values.connection.lower() == CLOSE),
        line,
        resolver.find(line),
    )
    if request.target is not None:
        request.route, request.area = request.target.route, request.target.area
    if headers or not values.presented:
        request.headers = _fields(data, data.find(b"\r\n"))
    return request


def plain_line(data: bytes, end: int) -> "re.Match[bytes] | None":
    """Returns the parts of a request line that ends there: method, path, query, version. None if it is not plain."""
    line = _LINE.fullmatch(data, 0, end)
    if line is None or line.end(3 if line[3] is not None else 2) > limits.MOST_URL_BYTES:
        return None
    return line


def _fields(data: bytes, end: int) -> list[Header]:
    lines = (line.partition(b": ") for line in data[end + 2 : -4].split(b"\r\n"))
    return [(name.lower(), value) for name, _, value in lines]
