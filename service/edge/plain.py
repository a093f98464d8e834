"""Heads of requests as bytes: how a plain GET is read without the parser.

Most requests arrive as one chunk that is one head of plain lines and nothing else, and most of its lines are those of
the request before on the same connection. So lines are compared, and only those that differ are read. The grammar is
RFC 9112's with less allowed: whatever is read here the parser would read the same (a property test holds the two
against each other), and whatever is not is for the parser to judge.
"""

import re

from service.edge import limits
from service.http.reply import Header

_PRINTABLE = bytes(range(0x20, 0x7F))
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# Header lines, and the two ends that the empty line behind them leaves.
_MOST = limits.MOST_HEADERS + 2
_ENDS = [b"\r\n" * (number - 1) for number in range(_MOST + 1)]
_MOST_NAMES = 1_000
# A connection whose requests have no common beginning by then has none.
_LESSONS = 8

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

# The values that matter of a request's headers, by kind, as they were sent.
Asked = dict[int, bytes]


def request_line(url: bytes) -> bytes:
    return b"GET %s HTTP/1.1" % url


def as_head(url: bytes, headers: list[Header]) -> bytes:
    """The head of a GET that the parser read."""
    return b"\r\n".join([request_line(url), *(b"%s: %s" % header for header in headers), b"", b""])


class Names:
    """What header names mean here, as they are spelled by those who send them. Of one worker."""

    def __init__(self) -> None:
        self._known: dict[bytes, int] = dict(_KINDS)

    def read(self, lines: list[bytes], asked: Asked) -> bool:
        """Adds what header lines ask for to `asked`. False if anything is out of the ordinary: a header that changes
        what the request is, one of those that matter sent twice, or written otherwise than `name: value`."""
        known = self._known
        for line in lines:
            name, colon, value = line.partition(b": ")
            kind = known.get(name) or self._kind_of(name)
            if not colon:
                return False
            if kind == OTHER:
                continue
            if kind == UNUSUAL or kind in asked or (kind == CONNECTION and value.lower() != b"keep-alive"):
                return False
            asked[kind] = value
        return True

    def _kind_of(self, name: bytes) -> int:
        if not _TOKEN.fullmatch(name):
            return UNUSUAL
        kind = _KINDS.get(name.lower(), OTHER)
        if len(self._known) < _MOST_NAMES:
            self._known[name] = kind
        return kind


class HeadReader:
    """Of one connection: reads the header lines of whole heads, and remembers those that all of them begin with."""

    __slots__ = ("_asked", "_before", "_lead", "_lessons", "_names", "_room")

    def __init__(self, names: Names) -> None:
        self._names = names
        self._lead = b"\r\n"  # what was read before, from the end of the request line on
        self._asked: Asked = {}
        self._room = limits.MOST_HEADERS
        self._before: list[bytes] = []
        self._lessons = _LESSONS

    def read(self, head: bytes, start: int) -> Asked | None:
        """What the header lines ask for, behind the request line that ends at `start`. Not to be changed.

        None if `head` is not one whole head of plain lines with nothing behind it.
        """
        if len(head) > limits.MOST_HEADER_BYTES:
            return None
        if not head.startswith(self._lead, start):
            self._lead, self._asked, self._room = b"\r\n", {}, limits.MOST_HEADERS
        rest = head[start + len(self._lead) :]
        if rest == b"\r\n":
            return self._asked
        lines = _lines_of(rest)
        asked = self._asked.copy()
        if lines is None or len(lines) > self._room or not self._names.read(lines, asked):
            return None
        if self._lessons and not self._asked:
            self._learn(lines)
        return asked

    def _learn(self, lines: list[bytes]) -> None:
        """What the last head and this one begin with, the next one will."""
        self._lessons -= 1
        before, self._before = self._before, lines
        common = 0
        while common < min(len(lines), len(before)) and lines[common] == before[common]:
            common += 1
        if common:
            self._names.read(lines[:common], self._asked)
            self._room -= common
            self._lead = b"\r\n".join([b"", *lines[:common], b""])
            self._before = []


def _lines_of(rest: bytes) -> list[bytes] | None:
    """Header lines to the end of a head, each of printable ASCII; None if it is anything else."""
    lines = rest.split(b"\r\n")
    count = len(lines)
    if not 2 < count <= _MOST or lines[-1] or lines[-2]:
        return None
    # only line ends may be left without what is printable: no other control character, no lone CR or LF
    if rest.translate(None, _PRINTABLE) != _ENDS[count]:
        return None
    del lines[-2:]
    return lines
