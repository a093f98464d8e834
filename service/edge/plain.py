"""Requests as lines, and what they ask for: how a plain GET is read without the parser.

Most requests arrive as one chunk that is one head of plain lines and nothing else. Such a chunk is cut into its lines
here, at a fifth of the parser's cost. The grammar is RFC 9112's with less allowed: whatever is read here the parser
would read the same (a property test holds the two against each other), and whatever is not is for the parser to judge.
"""

import re

from service.edge import limits
from service.http.reply import Header

_PRINTABLE = bytes(range(0x20, 0x7F))
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# A request line, header lines, and the two ends that the empty line behind them leaves.
_FEWEST, _MOST = 3, limits.MOST_HEADERS + 3
_ENDS = [b"\r\n" * (number - 1) for number in range(_MOST + 1)]

KEY, HOST, REQUEST_ID, ACCEPT, MATCH, CONNECTION, UNUSUAL, OTHER = range(1, 9)
_KINDS = {
    b"x-api-key": KEY,
    b"host": HOST,
    b"x-request-id": REQUEST_ID,
    b"accept-encoding": ACCEPT,
    b"if-none-match": MATCH,
    b"connection": CONNECTION,
    **dict.fromkeys(
        (b"content-length", b"transfer-encoding", b"expect", b"upgrade", b"te", b"trailer", b"proxy-connection"),
        UNUSUAL,
    ),
}
_MOST_NAMES = 1_000


def lines_of(chunk: bytes) -> list[bytes] | None:
    """The request line and the header lines of a chunk that is a whole head of printable ASCII and nothing behind it.

    None if it is anything else. A line of it may still be no header (`Names.read` tells).
    """
    lines = chunk.split(b"\r\n")
    count = len(lines)
    if not _FEWEST <= count <= _MOST or len(chunk) > limits.MOST_HEADER_BYTES or lines[-1] or lines[-2]:
        return None
    # only line ends may be left without what is printable: no other control character, no lone CR or LF
    if chunk.translate(None, _PRINTABLE) != _ENDS[count]:
        return None
    del lines[-2:]
    return lines


def request_line(url: bytes) -> bytes:
    return b"GET %s HTTP/1.1" % url


def as_lines(url: bytes, headers: list[Header]) -> list[bytes]:
    """The same of a GET that the parser read; `headers` with their names in lower case."""
    return [request_line(url), *(b"%s: %s" % header for header in headers)]


class Names:
    """What header names mean here, as they are spelled by those who send them."""

    def __init__(self) -> None:
        self._known: dict[bytes, int] = dict(_KINDS)

    def read(self, lines: list[bytes]) -> dict[int, bytes] | None:
        """The values that matter of a request's header lines, by kind, as they were sent.

        None if anything is out of the ordinary: a header that changes what the request is, one of those that matter
        sent twice, or written otherwise than `name: value`.
        """
        asked: dict[int, bytes] = {}
        known = self._known
        for line in lines[1:]:
            name, colon, value = line.partition(b": ")
            kind = known.get(name) or self._kind_of(name)
            if not colon:
                return None
            if kind == OTHER:
                continue
            if kind == UNUSUAL or kind in asked or (kind == CONNECTION and value.lower() != b"keep-alive"):
                return None
            asked[kind] = value
        return asked

    def _kind_of(self, name: bytes) -> int:
        if not _TOKEN.fullmatch(name):
            return UNUSUAL
        kind = _KINDS.get(name.lower(), OTHER)
        if len(self._known) < _MOST_NAMES:
            self._known[name] = kind
        return kind
