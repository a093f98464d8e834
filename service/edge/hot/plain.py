"""The head of a plain request that is not hot, read without the parser, for the checks."""

import re

from service.edge.admission import limits
from service.edge.hot.heads import CLOSE, HeadReader
from service.http.head import RequestHead, new_request_id
from service.http.reply import Header

# A target in origin form, of characters that RFC 3986 allows there. Two slashes would begin an authority.
_LINE = re.compile(
    rb"(GET|HEAD) (/(?!/)[A-Za-z0-9._~!$&'()*+,;=:@/-]*)(?:\?([A-Za-z0-9._~!$&'()*+,;=:@%/?-]*))? HTTP/(1\.[01])"
)


def plain_line(data: bytes, end: int) -> "re.Match[bytes] | None":
    """The request line that ends there: method, path, query, version. None if it is anything but plain."""
    line = _LINE.fullmatch(data, 0, end)
    if line is None or line.end(3 if line[3] is not None else 2) > limits.MOST_URL_BYTES:
        return None
    return line


def plain_head(data: bytes, reader: HeadReader, started: float, *, fields: bool) -> RequestHead | None:
    """None if `data` is anything but one whole head of plain lines. `fields`: whether all headers are wanted, which is
    so at least where there is no key."""
    end = data.find(b"\r\n")
    line = plain_line(data, end)
    if line is None:
        return None
    asked = reader.read(data, end)
    if asked is None:
        return None
    method, path, query, version = line.groups()
    head = RequestHead(
        (asked.request_id or new_request_id()).decode(),
        started,
        method.decode(),
        version.decode(),
        path.decode(),
        query or b"",
    )
    if asked.presented is not None:
        head.api_keys = (asked.presented,)
    if asked.host is not None:
        head.hosts, head.host = 1, asked.host
    head.last = version == b"1.0" or (asked.connection is not None and asked.connection.lower() == CLOSE)
    head.accept_encoding, head.if_none_match = asked.accept_encoding or b"", asked.if_none_match or b""
    if fields or not asked.presented:
        head.headers = _fields(data, end)
    return head


def _fields(data: bytes, end: int) -> list[Header]:
    lines = (line.partition(b": ") for line in data[end + 2 : -4].split(b"\r\n"))
    return [(name.lower(), value) for name, _, value in lines]
