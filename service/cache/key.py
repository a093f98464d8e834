"""The cache key of one answer. The release is part of it, so that entries never change (Decision 1)."""

from hashlib import blake2b

import msgspec

# Raise it when the envelope or the meaning of an entry changes: then two versions can share one Redis.
FORMAT_VERSION = 2
# A pattern of Redis: every entry, of any format.
EVERY_NAME = "c:*"
# An empty entry, to try whether the server stores any; in a cluster, the start of one name per server.
TRIAL_NAME = "c:trial"


class CacheKey(msgspec.Struct, frozen=True, gc=False):
    """Names one answer of one release."""

    digest: bytes  # of release, area and canonical query, 16 bytes
    release: str  # id

    @property
    def name(self) -> str:
        """Name of the entry in Redis."""
        return f"c:{FORMAT_VERSION}:{self.release}:{self.digest.hex()}"


def cache_key(release: str, area: str, query: str) -> CacheKey:
    return CacheKey(blake2b(f"{release}\n{area}\n{query}".encode(), digest_size=16).digest(), release)


def release_of(name: bytes) -> bytes | None:
    """Returns the release in the name of an entry, of any format; None if it names none."""
    parts = name.split(b":")
    return parts[2] if len(parts) == 4 else None


def is_trial(name: bytes) -> bool:
    """Returns whether the name is that of a trial, not of an answer."""
    return name.startswith(TRIAL_NAME.encode())
