"""Answers as they travel, where no framework writes them.

The heads of a hot answer are made once for each kept entry, as the ordinary way would write them. The date goes before
what is here; behind it the request id, of which the name is here already, and the limits.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from service.cache.entry import CacheEntry
from service.cache.read_through import Fetched
from service.http.caching import CachePolicy
from service.http.head import RequestHead
from service.http.reply import Header, Reply

_ID = b"x-request-id: "

# Of a 200 and of a 304, then the ETag; the same of gzip, where there is such a coding.
Heads = tuple[tuple[bytes, bytes, bytes], ...]

# Stands for an entry's own; nothing else in a head is 16 such bytes.
_ANY_DIGEST = b"\xa5" * 16


def heads_with(policy: CachePolicy) -> Callable[[str, CacheEntry], Heads]:
    """Makes the heads of an entry of a release."""

    @lru_cache(maxsize=4)  # releases come one after the other
    def templates(release: str) -> tuple[_Template, _Template]:
        return _Template(policy, release, b""), _Template(policy, release, b"gzip")

    def heads(release: str, entry: CacheEntry) -> Heads:
        plain, gzip = templates(release)
        digest = entry.etag_digest.hex().encode()
        of_plain = plain.filled(digest, len(entry.body))
        return (of_plain, gzip.filled(digest, len(entry.gzipped))) if entry.gzipped else (of_plain,)

    return heads


def last_answer(reply: Reply, request_id: str, defaults: Sequence[Header]) -> bytes:
    """An answer after which the connection is closed; `defaults` are the server's own headers."""
    behind = ((b"x-request-id", request_id.encode()), (b"connection", b"close"))
    head = _lines([*defaults, *reply.fields(), *behind])
    return b"".join((STATUS_LINE[reply.status], head, b"\r\n", reply.body))


class _Template:
    """What the heads of a release have in common in one coding: all but the digest in the ETag, and the length."""

    def __init__(self, policy: CachePolicy, release: str, accepted: bytes) -> None:
        fetched = Fetched(CacheEntry(b"", b"packed", _ANY_DIGEST), "near", bypassed=False)
        head = RequestHead("", 0.0, accept_encoding=accepted)
        whole = policy.answer(head, fetched, release, "")
        head.if_none_match = etag = dict(whole.headers)[b"etag"]
        unchanged = policy.answer(head, fetched, release, "")
        hole = _ANY_DIGEST.hex().encode()
        self._whole = _lines(whole.headers).split(hole)
        self._unchanged = (_lines(unchanged.fields()) + _ID).split(hole)
        self._etag = etag.split(hole)

    def filled(self, digest: bytes, length: int) -> tuple[bytes, bytes, bytes]:
        """`digest` is hexadecimal."""
        whole = b"%bcontent-length: %d\r\n%b" % (digest.join(self._whole), length, _ID)
        return whole, digest.join(self._unchanged), digest.join(self._etag)


def _lines(fields: Sequence[Header]) -> bytes:
    return b"".join(b"%s: %s\r\n" % field for field in fields)
