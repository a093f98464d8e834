"""Answers as they travel, where no framework writes them.

The heads of a hot answer are made once for each kept entry, as the ordinary way would write them. The date goes before
what is here; behind it the request id, of which the name is here already, and the limits.
"""

from collections.abc import Callable, Sequence

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from service.cache.entry import CacheEntry
from service.cache.read_through import Fetched
from service.http.caching import CachePolicy
from service.http.head import RequestHead
from service.http.reply import Header, Reply

_ID = b"x-request-id: "

# Of a 200 and of a 304, then the ETag; the same of gzip, where there is such a coding.
Heads = tuple[tuple[bytes, bytes, bytes], ...]


def heads_with(policy: CachePolicy) -> Callable[[str, CacheEntry], Heads]:
    """Makes the heads of an entry of a release."""

    def heads(release: str, entry: CacheEntry) -> Heads:
        plain = _coded(policy, release, entry, b"")
        return (plain, _coded(policy, release, entry, b"gzip")) if entry.gzipped else (plain,)

    return heads


def last_answer(reply: Reply, request_id: str, defaults: Sequence[Header]) -> bytes:
    """An answer after which the connection is closed; `defaults` are the server's own headers."""
    behind = ((b"x-request-id", request_id.encode()), (b"connection", b"close"))
    head = _lines([*defaults, *reply.fields(), *behind])
    return b"".join((STATUS_LINE[reply.status], head, b"\r\n", reply.body))


def _coded(policy: CachePolicy, release: str, entry: CacheEntry, accepted: bytes) -> tuple[bytes, bytes, bytes]:
    fetched = Fetched(entry, "near", bypassed=False)
    head = RequestHead("", 0.0, accept_encoding=accepted)
    whole = policy.answer(head, fetched, release, "")
    head.if_none_match = etag = dict(whole.headers)[b"etag"]
    unchanged = policy.answer(head, fetched, release, "")
    return _lines(whole.fields()) + _ID, _lines(unchanged.fields()) + _ID, etag


def _lines(fields: Sequence[Header]) -> bytes:
    return b"".join(b"%s: %s\r\n" % field for field in fields)
