"""Answers as bytes on the wire, where the framework does not write them.

The heads of a hot 200 are made once per kept entry, as the router path would write them; those of a 304 when it is
told. The status line and the date go in front of them. They end with the name of the request id's header; its value and
the limits follow.
"""

from collections.abc import Sequence
from functools import lru_cache

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from service.cache.entry import CacheEntry
from service.cache.near import PreparedHeads
from service.cache.read_through import Fetched, Tier
from service.http.caching import CachePolicy
from service.http.head import RequestHead
from service.http.preconditions import matches
from service.http.reply import Header, Reply

_ID = b"x-request-id: "
_CLOSING = b"%bconnection: close\r\n\r\n"

Headers = list[Header]

# Stands in a template for an entry's digest. Nothing else in a head is 16 such bytes.
_ANY_DIGEST = b"\xa5" * 16


class HeadMaker:
    """Makes the heads of entries that were found in `tier`. One per tier and worker.

    It keeps the templates of one release at a time: releases come one after the other.
    """

    def __init__(self, policy: CachePolicy, tier: Tier) -> None:
        self._policy = policy
        self._tier = tier
        self._release: str | None = None
        self._plain = self._gzip = _Template(policy, tier, "", b"")

    def all_of(self, release: str, entry: CacheEntry, *, gzip: bool = True) -> PreparedHeads:
        """The header lines of 200s with `entry`: the plain one's, and the gzip one's if it has that coding. Without
        `gzip`, only the plain one's."""
        plain = self._template(release, zipped=False).whole(entry.etag_digest, len(entry.body))
        if not gzip or not entry.gzipped:
            return (plain,)
        return plain, self._template(release, zipped=True).whole(entry.etag_digest, len(entry.gzipped))

    def unchanged(self, release: str, entry: CacheEntry, if_none_match: bytes, *, zipped: bool) -> bytes | None:
        """The header lines of a 304; None if `if_none_match` does not match the ETag. They are made when they are told:
        kept, they would take as much memory as those of a 200."""
        return self._template(release, zipped=zipped).unchanged(entry.etag_digest, if_none_match)

    def _template(self, release: str, *, zipped: bool) -> "_Template":
        if release != self._release:
            self._release = release
            self._plain = _Template(self._policy, self._tier, release, b"")
            self._gzip = _Template(self._policy, self._tier, release, b"gzip")
        return self._gzip if zipped else self._plain


def whole_answer(reply: Reply, behind: tuple[Header, ...], dates: Headers, *, bodiless: bool = False) -> bytes:
    """A whole answer, with the fields `behind` its own. `dates` are the server's own headers."""
    length = b"" if reply.status == 304 else b"content-length: %d\r\n" % len(reply.body)
    own, body = lines_kept(reply.headers), b"" if bodiless else reply.body
    return b"".join((STATUS_LINE[reply.status], _DATES.of(dates), own, length, lines_of(behind), b"\r\n", body))


def closing_tail(tail: bytes) -> bytes:
    """The end of a head which also tells that the connection ends."""
    return _CLOSING % tail[:-2]


class _DateLines:
    """The server's own headers as they travel: the server has new ones once a second."""

    def __init__(self) -> None:
        self._dates: Headers = []
        self._lines = b""

    def of(self, dates: Headers) -> bytes:
        if dates is not self._dates:
            self._dates, self._lines = dates, lines_of(dates)
        return self._lines


_DATES = _DateLines()


class _Template:
    """The heads of one release and coding, without what differs: the digest in the ETag, and the length."""

    def __init__(self, policy: CachePolicy, tier: Tier, release: str, accepted: bytes) -> None:
        fetched = Fetched(CacheEntry(b"", b"packed", _ANY_DIGEST), tier, bypassed=False)
        head = RequestHead("", 0.0, accept_encoding=accepted)
        whole = policy.answer(head, fetched, release, "")
        head.if_none_match = etag = dict(whole.headers)[b"etag"]
        unchanged = policy.answer(head, fetched, release, "")
        hole = _ANY_DIGEST.hex().encode()
        self._before, behind = lines_of(whole.headers).split(hole)
        self._behind = behind + b"content-length: "
        self._unchanged = (lines_of(unchanged.fields()) + _ID).split(hole)
        self._etag = etag.split(hole)

    def whole(self, etag_digest: bytes, length: int) -> bytes:
        return b"%b%b%b%d\r\n%b" % (self._before, etag_digest.hex().encode(), self._behind, length, _ID)

    def unchanged(self, etag_digest: bytes, if_none_match: bytes) -> bytes | None:
        digest = etag_digest.hex().encode()
        etag = digest.join(self._etag)
        if if_none_match == etag or matches(if_none_match, etag):
            return digest.join(self._unchanged)
        return None


def lines_of(fields: Sequence[Header]) -> bytes:
    """Header fields as they travel."""
    return b"".join(b"%s: %s\r\n" % field for field in fields)


# Errors that are alike have the same fields.
lines_kept = lru_cache(maxsize=256)(lines_of)
