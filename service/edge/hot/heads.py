"""Heads of requests as bytes: how a plain GET is read without the parser.

Most requests arrive as one chunk that is one head of plain lines and nothing else, and it looks like the one before on
the same connection: the same lines, and others that differ in their values alone. So a head is compared with what the
last ones had in common, and what it adds to that is matched as a whole. The grammar is RFC 9112's with less allowed:
whatever is read here the parser would read the same (a property test holds the two against each other), and whatever
is not is for the parser to judge.
"""

import re
from collections.abc import Callable
from functools import lru_cache

from service.edge.admission import limits
from service.http.reply import Header

_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# Header lines to the end of a head: no control character, no lone CR or LF, nothing that is not ASCII.
_LINES = re.compile(rb"(?:[!-~][ -~]*\r\n)*\r\n")
# Names are remembered before the key is looked at, so neither their number nor their length may be a stranger's choice.
_MOST_NAMES, _LONGEST_NAME = 1_000, 64
# A connection whose requests have nothing in common by then has nothing in common.
_LESSONS = 4
# Of names whose values differ, all together. A matcher takes time and memory for each byte of them: some 10 ms and
# 0.2 MB for a whole head full, which is no bargain, and a way to keep a worker busy.
_MOST_NAME_BYTES = 1_000

_OTHER, _UNUSUAL = "", "unusual"
# The attribute of `Asked` that a header sets.
_FIELDS = {
    b"x-api-key": "presented",
    b"host": "host",
    b"x-request-id": "request_id",
    b"accept-encoding": "accept_encoding",
    b"if-none-match": "if_none_match",
    b"connection": "connection",
    **dict.fromkeys(
        (b"content-length", b"transfer-encoding", b"expect", b"upgrade", b"te", b"trailer", b"proxy-connection"),
        _UNUSUAL,
    ),
}
_Names = tuple[bytes, ...]
_Match = Callable[[bytes, int], "re.Match[bytes] | None"]


class Asked:
    """The values that matter of a request's headers, as they were sent; None where there is none."""

    __slots__ = ("accept_encoding", "connection", "host", "if_none_match", "presented", "request_id")

    def __init__(self) -> None:
        self.presented: bytes | None = None
        self.host: bytes | None = None
        self.request_id: bytes | None = None
        self.accept_encoding: bytes | None = None
        self.if_none_match: bytes | None = None
        self.connection: bytes | None = None


def request_line(url: bytes) -> bytes:
    return b"GET %s HTTP/1.1" % url


def as_head(url: bytes, headers: list[Header]) -> bytes:
    """The head of a GET that the parser read."""
    return b"\r\n".join([request_line(url), *(b"%s: %s" % header for header in headers), b"", b""])


class Fields:
    """What header names mean here, as they are spelled by those who send them. Of one worker."""

    def __init__(self) -> None:
        self._known: dict[bytes, str] = dict(_FIELDS)

    def read(self, lines: list[bytes], asked: Asked) -> bool:
        """Sets what header lines ask for. False if anything is out of the ordinary: a header that changes what the
        request is, one of those that matter sent twice, or written otherwise than `name: value`."""
        for line in lines:
            name, colon, value = line.partition(b": ")
            field = self.of(name) if colon else _UNUSUAL
            if field == _OTHER:
                continue
            if field == _UNUSUAL or getattr(asked, field) is not None:
                return False
            if value != value.strip() or (field == "connection" and value.lower() != b"keep-alive"):
                return False
            setattr(asked, field, value)
        return True

    def of(self, name: bytes) -> str:
        field = self._known.get(name)
        if field is None:
            field = _FIELDS.get(name.lower(), _OTHER) if _TOKEN.fullmatch(name) else _UNUSUAL
            if len(self._known) < _MOST_NAMES and len(name) <= _LONGEST_NAME:
                self._known[name] = field
        return field


class HeadReader:
    """Of one connection: reads the header lines of whole heads, and learns what they have in common.

    `news` are the lines of the last head, if there is something to `learn` from them. A head that is `usual`, from the
    end of its request line on, asks for what `usually` says: whoever has it need not call.
    """

    __slots__ = ("_before", "_fields", "_has_id", "_lead", "_lessons", "_match", "news", "usual", "usually")

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self._lessons = _LESSONS
        self.news: list[bytes] | None = None
        self._before: list[bytes] = []
        self.usual = b""
        self.usually = Asked()
        self._lead = b""  # what usual heads begin with that differ in some values
        self._match: _Match | None = None  # and what comes behind it
        self._has_id = False

    def read(self, head: bytes, start: int) -> Asked | None:
        """What the header lines ask for, behind the request line that ends at `start`. Good until the next call.

        None if `head` is not one whole head of plain lines with nothing behind it.
        """
        if self.usual:
            if head[start:] == self.usual:
                return self.usually
        elif self._match is not None and head.startswith(self._lead, start) and len(head) <= limits.MOST_HEADER_BYTES:
            found = self._match(head, start + len(self._lead))
            if found is not None:
                if self._has_id:
                    self.usually.request_id = found[1]
                return self.usually
        return self._read_anew(head, start)

    def _read_anew(self, head: bytes, start: int) -> Asked | None:
        if len(head) > limits.MOST_HEADER_BYTES or not _LINES.fullmatch(head, start + 2):
            return None
        lines = head[start + 2 : -4].split(b"\r\n")
        asked = Asked()
        if len(lines) > limits.MOST_HEADERS or not self._fields.read(lines, asked):
            return None
        self.news = lines if self._lessons else None
        return asked

    def learn(self) -> None:
        """What the last head and this one have in common, the next one will. It costs some 0.2 ms: not for callers
        whom nobody knows."""
        lines, before, self.news = self.news or [], self._before, None
        self._before = lines
        if not before:
            return
        self._lessons -= 1
        common = 0
        while common < min(len(lines), len(before)) and lines[common] == before[common]:
            common += 1
        names = tuple(line.partition(b": ")[0] for line in lines[common:])
        fields = [self._fields.of(name) for name in names]
        if (
            sum(map(len, names)) > _MOST_NAME_BYTES
            or not common
            or any(field not in (_OTHER, "request_id") for field in fields)
        ):
            return
        self._lead = b"\r\n".join([b"", *lines[:common], b""])
        self.usually = Asked()
        self._fields.read(lines[:common], self.usually)
        self.usual = b"" if names else self._lead + b"\r\n"
        self._has_id = "request_id" in fields
        self._match = _matcher(names, fields.index("request_id") if self._has_id else -1)


@lru_cache(maxsize=1_000)
def _matcher(names: _Names, wanted: int) -> _Match:
    """Matches lines of these names to the end of the head; the value of the one numbered `wanted` is the group."""
    values = (b"([!-~]*)" if number == wanted else b"[ -~]*" for number in range(len(names)))
    lines = (re.escape(name) + b": " + value + b"\r\n" for name, value in zip(names, values, strict=True))
    return re.compile(b"".join(lines) + b"\r\n").fullmatch
