"""Headers of answers that may be kept: validators (RFC 9110), Cache-Control, Cache-Status (RFC 9211), coding."""

import re

import msgspec

from service.cache.entry import CacheEntry
from service.cache.key import CacheKey
from service.cache.read_through import Fetched
from service.http.head import RequestHead
from service.http.preconditions import is_unchanged
from service.http.reply import JSON, Header, Kept, Reply

VARY: Header = (b"vary", b"accept, accept-encoding, x-api-key")
_GZIP: Header = (b"content-encoding", b"gzip")
_WEIGHT = re.compile(rb"q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)")  # RFC 9110 12.4.2
_HITS = {"near": b"forecast; hit; detail=near", "shared": b"forecast; hit; detail=shared"}


class CachePolicy:
    """`max_age`, in seconds, for the caller's own cache."""

    def __init__(self, max_age: int) -> None:
        self._control: Header = (b"cache-control", b"private, max-age=%d" % max_age)

    def headers(self, release: str) -> tuple[Header, ...]:
        """What an answer without a validator carries: a 404 that nothing matches."""
        return (self._control, VARY, (b"x-data-release", release.encode()))

    def answer(
        self, head: RequestHead, fetched: Fetched, release: str, outcome: str, key: CacheKey | None = None
    ) -> Reply:
        """200 with the coding that the caller accepts, or 304 if it has the same bytes already.

        `key` is what the caches know the entry by, if they may have it. Raises ApiError (412), as all here do.
        """
        kept = Kept(key, outcome) if key is not None else None
        return self._answer(head, fetched.entry, release, outcome, ((b"cache-status", cache_status(fetched)),), kept)

    def stale_answer(self, head: RequestHead, fetched: Fetched, release: str, outcome: str, age: int) -> Reply:
        """The same from a release that was current `age` seconds ago: it says so (RFC 9111 5.1, RFC 9211 2.3)."""
        status = b"forecast; hit; ttl=-%d; detail=previous-release" % age
        reply = self._answer(head, fetched.entry, release, outcome, ((b"cache-status", status),))
        return msgspec.structs.replace(reply, headers=(*reply.headers, (b"age", b"%d" % age)))

    def own_answer(self, head: RequestHead, entry: CacheEntry, release: str, content_type: Header = JSON) -> Reply:
        """The same for what no cache of ours keeps."""
        return self._answer(head, entry, release, content_type=content_type)

    def _answer(
        self,
        head: RequestHead,
        entry: CacheEntry,
        release: str,
        outcome: str = "answered",
        status: tuple[Header, ...] = (),
        kept: Kept | None = None,
        content_type: Header = JSON,
    ) -> Reply:
        compressed = bool(entry.gzipped) and accepts_gzip(head.accept_encoding)
        etag = etag_of(entry, compressed=compressed)
        shared = ((b"etag", etag), *self.headers(release), *status)
        if _has_the_same(head, etag):
            return Reply(304, shared, b"", "not_modified", kept)
        coding = (_GZIP,) if compressed else ()
        return Reply(200, (content_type, *coding, *shared), entry.gzipped if compressed else entry.body, outcome, kept)


def etag_of(entry: CacheEntry, *, compressed: bool) -> bytes:
    """A strong validator: of the encoded bytes, and another one for each coding."""
    return b'"%s%s"' % (entry.etag_digest.hex().encode(), b"-gzip" if compressed else b"")


def _has_the_same(head: RequestHead, etag: bytes) -> bool:
    """Whether the caller has the bytes of `etag`. Answers that caches may keep have no modification date: a release
    that does not change them keeps their tag. Raises ApiError (412)."""
    if head.if_match is None and not head.if_none_match:
        return False
    return is_unchanged({b"if-match": head.if_match, b"if-none-match": head.if_none_match or None}, etag)


def accepts_gzip(accept_encoding: bytes) -> bool:
    """Whether gzip, or everything not named, is accepted, and the plain bytes are not preferred to it."""
    weights: dict[bytes, float] = {}
    for part in accept_encoding.lower().split(b","):
        coding, *parameters = part.split(b";")
        weights[coding.strip()] = min(map(_weight, parameters), default=1.0)
    weight = weights.get(b"gzip", weights.get(b"x-gzip", weights.get(b"*", 0.0)))
    return weight > 0 and weight >= weights.get(b"identity", 0.0)


def cache_status(fetched: Fetched) -> bytes:
    """RFC 9211. No `Age` goes with a hit: it would say that the origin has not confirmed the answer for this request
    (RFC 9111, 5.1), and callers would take it off `max-age`. We are the origin, and an entry found under the current
    release is what the warehouse would say now.
    """
    if fetched.tier != "warehouse":
        return _HITS[fetched.tier]
    reason = b"bypass" if fetched.bypassed else b"uri-miss"
    return b"forecast; fwd=%s; detail=warehouse" % reason


def _weight(parameter: bytes) -> float:
    """An invalid weight is 0: everybody can read plain bytes."""
    if parameter.partition(b"=")[0].strip() != b"q":
        return 1.0
    valid = _WEIGHT.fullmatch(parameter.strip())
    return float(valid[1]) if valid else 0.0
