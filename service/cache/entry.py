"""One cached answer and its envelope.

Redis' replies are checked before they are served (Decision 2): a reply for another key (a digest of 128 bits), or a
damaged one (a checksum of 32, against accidents), is a miss.
"""

import gzip
from hashlib import blake2b
from struct import Struct
from typing import Literal
from zlib import crc32

import msgspec

from service.cache.key import FORMAT_VERSION

# Marker, format version, digest of the cache key, and the CRC-32 of the rest: ETag digest, length of the body in bytes,
# the body, the gzipped body.
_HEAD = Struct(">3sB16sI16sI")
_OUTER, _INNER = Struct(">3sB16sI"), Struct(">16sI")
_MARKER = b"phf"
# About the payload of one Ethernet frame: for a smaller body, gzip saves no packet.
WORTH_COMPRESSING_BYTES = 1400


class CacheEntry(msgspec.Struct, frozen=True, gc=False):
    """One encoded answer. It never changes (Decision 1), so all tiers share it."""

    body: bytes
    gzipped: bytes  # empty if compression is not worth it
    etag_digest: bytes  # of `body`, 16 bytes

    @classmethod
    def of(cls, body: bytes) -> "CacheEntry":
        gzipped = gzip.compress(body, 6, mtime=0) if len(body) >= WORTH_COMPRESSING_BYTES else b""
        return cls(body, gzipped, blake2b(body, digest_size=16).digest())


# The tier of an answer; previous: a release that stands in for the current one.
Tier = Literal["near", "shared", "warehouse", "previous"]
# For each coding of an entry, the header lines that are kept beside it: the plain form first.
PreparedHeads = tuple[bytes, ...]


class Found(msgspec.Struct, frozen=True, gc=False):
    """The result of a look-up, with its tier. The near cache keeps it."""

    entry: CacheEntry
    tier: Tier
    release: str
    heads: PreparedHeads = ()  # only in the near cache
    stored_at: float = 0.0  # in the near cache, in monotonic seconds
    bypassed: bool = False  # the shared cache was unreachable
    stale_for: int | None = None  # seconds since its release stopped being current


def encode_entry(entry: CacheEntry, key_digest: bytes) -> bytes:
    inner = _INNER.pack(entry.etag_digest, len(entry.body)) + entry.body + entry.gzipped
    return _OUTER.pack(_MARKER, FORMAT_VERSION, key_digest, crc32(inner)) + inner


def decode(data: bytes, key_digest: bytes) -> CacheEntry | None:
    """Returns the entry in `data`, or None if it is not one, is damaged, or belongs to another key."""
    if len(data) < _HEAD.size:
        return None
    marker, version, digest, checksum, etag_digest, length = _HEAD.unpack_from(data)
    if marker != _MARKER or version != FORMAT_VERSION or digest != key_digest:
        return None
    if crc32(memoryview(data)[_OUTER.size :]) != checksum:
        return None
    end = _HEAD.size + length
    if end > len(data):
        return None
    return CacheEntry(data[_HEAD.size : end], data[end:], etag_digest)
