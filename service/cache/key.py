"""The name of one answer in the cache. The release is part of it, so an entry never has to be changed (Decision 1)."""

from hashlib import blake2b

import msgspec

# Raised whenever the envelope or the meaning of an entry changes, so that two versions can share one Redis.
FORMAT_VERSION = 2
# As Redis matches names: every entry, of whatever format.
EVERY_NAME = "c:*"
# An entry of nothing: whether one can be stored.
TRIAL_NAME = "c:trial"


class CacheKey(msgspec.Struct, frozen=True):
    """`digest` (16 bytes) is of release, area and canonical query; `name` is the key in Redis."""

    name: str
    digest: bytes
    release: str


def cache_key(release: str, area: str, query: str) -> CacheKey:
    digest = blake2b(f"{release}\n{area}\n{query}".encode(), digest_size=16).digest()
    return CacheKey(f"c:{FORMAT_VERSION}:{release}:{digest.hex()}", digest, release)
