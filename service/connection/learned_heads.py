"""Reads the head of a plain GET without the parser.

Most requests arrive as one chunk: one head of plain lines and no body. It is similar to others on its connection: some
lines are the same, the others differ only in their values. So a head is compared with the common part of earlier ones,
and the rest is matched by one regular expression. The grammar is a subset of RFC 9112's. Any head read here, the parser
would read the same (a property test compares the two); others are left to the parser.
"""

import re
from collections.abc import Callable

import msgspec

from service.connection import limits
from service.request.request import REQUEST_ID, valid_host, valid_request_id
from service.request.response import Header

_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# Header lines to the end of a head: no control characters, no lone CR or LF, ASCII only.
_LINES = re.compile(rb"(?:[!-~][ -~]*\r\n)*\r\n")
# Names are remembered before the key is checked, so their number and their length (in bytes) are bounded.
_MOST_NAMES, _LONGEST_NAME = 1_000, 64
# Kinds of heads that a connection learns: one with `If-None-Match` beside one without it, for example.
_MOST_TEMPLATES = 4
# Heads of a connection that are compared. If those have no common part, later ones will not either.
_TRIES = 16
# Heads that are kept to be compared with later ones, each of its own kind.
_MOST_BEFORE = 2
# Limit for all names whose values differ. A matcher costs time and memory for each byte of them: some 10 ms and 0.2 MB
# for a head of the full size, which would not pay, and could be used to keep a worker busy.
_MOST_NAME_BYTES = 1_000
_MOST_MATCHERS = 1_000
_MOST_ADDRESSES = 1_000  # addresses
# Longer heads are not kept: a connection keeps up to six times their bytes. Reading one from scratch takes some 10 µs.
_LONGEST_KEPT = 2_000
# Matchers of heads without a verified key, whose senders must not keep a worker busy.
_MOST_UNVERIFIED = 100

# Instead of an attribute, in `_FIELDS`: a header that is ignored here, and one that only the parser can handle.
_OTHER, _UNUSUAL = "", "unusual"
_FOR_PARSER = (b"content-length", b"transfer-encoding", b"expect", b"upgrade", b"te", b"trailer", b"proxy-connection",
               b"if-match")  # fmt: skip
# The attribute of `HeaderValues` that a header sets.
_FIELDS = {
    b"x-api-key": "presented",
    b"host": "host",
    b"x-request-id": "request_id",
    b"accept-encoding": "accept_encoding",
    b"if-none-match": "if_none_match",
    b"connection": "connection",
    **dict.fromkeys(_FOR_PARSER, _UNUSUAL),
}
# Attributes that may differ from head to head on a connection; where others do, the head is read from scratch.
_VARYING = ("request_id", "presented", "if_none_match", "accept_encoding")
# Patterns of values: of a used header, of an ignored one, and of an id, which may be unusable.
_VALUE = b"([!-~]*)"
_VALUES = {
    _OTHER: b"[ -~]*",
    "request_id": b"(?:(%b)|[!-~]*)" % REQUEST_ID,
    "accept_encoding": b"((?:[!-~](?:[ -~]*[!-~])?)?)",
}
CLOSE = b"close"
_CONNECTION = (b"keep-alive", CLOSE)
_Names = tuple[bytes, ...]
_Match = Callable[[bytes, int], "re.Match[bytes] | None"]


class HeaderValues:
    """The used header values of one request, as they were sent; None if absent.

    `request_id` is None or empty, too, if the one that was sent is unusable.
    """

    __slots__ = ("accept_encoding", "connection", "host", "if_none_match", "presented", "request_id")

    def __init__(self) -> None:
        self.presented: bytes | None = None
        self.host: bytes | None = None
        self.request_id: bytes | None = None
        self.accept_encoding: bytes | None = None
        self.if_none_match: bytes | None = None
        self.connection: bytes | None = None


class HeadTemplate(msgspec.Struct, frozen=True):
    """The common part of heads: the lines that they begin with, and a matcher of the rest."""

    lead: bytes
    match: _Match
    groups: tuple[int, ...]  # the group of the matcher that is each attribute of `_VARYING`; 0: it does not vary
    values: HeaderValues  # of the lead, and of the last head that was read with this
    usual: bytes  # the whole, if there is no rest; else empty

    def read(self, head: bytes, start: int) -> HeaderValues | None:
        """Returns the values of a head whose request line ends at `start`; None if it does not match."""
        if self.usual:
            return self.values if head[start:] == self.usual else None
        found = self.match(head, start + len(self.lead)) if head.startswith(self.lead, start) else None
        if found is None:
            return None
        values, (request_id, presented, if_none_match, accept_encoding) = self.values, self.groups
        if request_id:
            values.request_id = found[request_id]
        if presented:
            values.presented = found[presented]
        if if_none_match:
            values.if_none_match = found[if_none_match]
        if accept_encoding:
            values.accept_encoding = found[accept_encoding]
        return values


def as_head(url: bytes, headers: list[Header], method: bytes = b"GET", version: bytes = b"1.1") -> bytes:
    """Returns a head that the parser read."""
    line = b"%s %s HTTP/%s" % (method, url, version)
    return b"\r\n".join([line, *(b"%s: %s" % header for header in headers), b"", b""])


class Fields:
    """The attributes of header names, in every spelling seen, and matchers of heads. One per worker, which owns it."""

    def __init__(self) -> None:
        self._known: dict[bytes, str] = dict(_FIELDS)
        self.matchers: dict[tuple[_Names, tuple[int, ...]], _Match] = {}
        self._made_unverified = 0
        # templates by the address that the heads came from: another connection from there probably sends the same
        self.templates: dict[str, list[HeadTemplate]] = {}

    def read(self, lines: list[bytes], asked: HeaderValues) -> bool:
        """Sets the values of header lines in `asked`. Returns False if only the parser can handle them: a header that
        changes the framing, a used one that is sent twice, or a line other than `name: value`.
        """
        for line in lines:
            name, colon, value = line.partition(b": ")
            field = self.of(name) if colon else _UNUSUAL
            if field == _OTHER:
                continue
            if field == _UNUSUAL or getattr(asked, field) is not None:
                return False
            if field == "connection":
                value = value.lower()
                if value not in _CONNECTION:
                    return False
            if value != value.strip():
                return False
            if field == "host" and not valid_host(value):
                return False
            if field == "request_id" and not valid_request_id(value):
                value = b""
            setattr(asked, field, value)
        return True

    def of(self, name: bytes) -> str:
        field = self._known.get(name)
        if field is None:
            field = _FIELDS.get(name.lower(), _OTHER) if _TOKEN.fullmatch(name) else _UNUSUAL
            if len(self._known) < _MOST_NAMES and len(name) <= _LONGEST_NAME:
                self._known[name] = field
        return field

    def matcher(self, names: _Names, wanted: tuple[int, ...], *, verified: bool) -> _Match | None:
        """Returns a matcher of lines with these names, to the end of the head; None if there are too many.

        Groups are the values of the lines numbered `wanted`, None for an unusable request id. A matcher
        costs some 0.2 ms, so only a few are made of heads without a verified key.
        """
        found = self.matchers.get((names, wanted))
        if found is None and (verified or self._made_unverified < _MOST_UNVERIFIED):
            self._made_unverified += not verified
            if len(self.matchers) >= _MOST_MATCHERS:
                self.matchers.clear()
            wants = (self.of(name) if number in wanted else _OTHER for number, name in enumerate(names))
            found = self.matchers[names, wanted] = _matcher(names, [_VALUES.get(field, _VALUE) for field in wants])
        return found

    def share(self, origin: str, templates: list[HeadTemplate]) -> None:
        if len(self.templates) >= _MOST_ADDRESSES:
            self.templates.clear()
        self.templates[origin] = templates


class HeadReader:
    """Reads the header lines of the heads of one connection, which owns it, and learns their common part. It begins
    with the templates of another connection from the same `origin`.
    """

    __slots__ = ("_before", "_fields", "_lines", "_read", "_tries", "_values", "news", "origin", "templates")

    def __init__(self, fields: Fields, origin: str = "") -> None:
        self.origin = origin
        self.templates = fields.templates.get(origin, [])  # the latest first
        self.news: list[bytes] | None = None  # the lines of the last head, if `learn` can use them
        self._fields = fields
        self._tries = _TRIES  # heads that are still compared
        self._before: dict[_Names, list[bytes]] = {}  # by their names, lines of heads without a template
        self._read = b""  # the last head that was read from scratch,
        self._lines: list[bytes] = []  # its lines,
        self._values: HeaderValues | None = None  # and its values

    def read(self, head: bytes, start: int) -> HeaderValues | None:
        """Returns the values of the header lines, which follow the request line that ends at `start`.

        Valid until the next call of any reader. None if `head` is anything but one whole head of plain lines.
        """
        self.news = None  # the head before may not have been answered here
        if len(head) <= _LONGEST_KEPT:
            for template in self.templates:
                values = template.read(head, start)
                if values is not None:
                    return values
        return self._read_from_scratch(head, start)

    def _read_from_scratch(self, head: bytes, start: int) -> HeaderValues | None:
        if head[start:] == self._read:
            self.news = self._lines if self._tries else None
            return self._values
        if len(head) > limits.MOST_HEADER_BYTES or not _LINES.fullmatch(head, start + 2):
            return None
        lines = head[start + 2 : -4].split(b"\r\n")
        asked = HeaderValues()
        if len(lines) > limits.MOST_HEADERS or not self._fields.read(lines, asked):
            return None
        if len(head) <= _LONGEST_KEPT:
            self.news = lines if self._tries else None
            self._read, self._lines, self._values = head[start:], lines, asked
        return asked

    def learn(self, *, verified: bool = True) -> None:
        """Makes a template of the common part of this head and the last one with the same names.

        `verified`: its key is.
        """
        lines, self.news = self.news or [], None
        names = tuple(line.partition(b": ")[0] for line in lines)
        before = self._before.pop(names, None)
        if before is None:
            if len(self._before) < _MOST_BEFORE:
                self._before[names] = lines
            return
        self._tries -= 1
        common = 0
        while common < len(lines) and lines[common] == before[common]:
            common += 1
        names = names[common:]
        fields = [self._fields.of(name) for name in names]
        if (
            sum(map(len, names)) > _MOST_NAME_BYTES
            or not common
            or any(field not in (_OTHER, *_VARYING) for field in fields)
        ):
            return
        wanted = tuple(number for number, field in enumerate(fields) if field != _OTHER)
        match = self._fields.matcher(names, wanted, verified=verified)
        if match is None:
            return
        lead, values = b"\r\n".join([b"", *lines[:common], b""]), HeaderValues()
        self._fields.read(lines[:common], values)
        varies = [field for field in fields if field != _OTHER]
        groups = tuple(varies.index(field) + 1 if field in varies else 0 for field in _VARYING)
        template = HeadTemplate(lead, match, groups, values, b"" if names else lead + b"\r\n")
        self.templates = [template, *self.templates][:_MOST_TEMPLATES]
        if verified:
            self._fields.share(self.origin, self.templates)


def _matcher(names: _Names, values: list[bytes]) -> _Match:
    lines = (re.escape(name) + b": " + value + b"\r\n" for name, value in zip(names, values, strict=True))
    return re.compile(b"".join(lines) + b"\r\n").fullmatch
