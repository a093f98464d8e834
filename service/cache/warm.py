"""Puts the answers of a release into the shared cache before it goes live, so that the hit rate does not dip."""

import time
from collections.abc import Callable, Iterable

import msgspec
from redis import Redis
from redis.exceptions import RedisError

from service.base.batched import batched
from service.cache import entry as envelope
from service.cache.entry import CacheEntry
from service.cache.key import cache_key
from service.redis.errors import StoreUnavailable
from service.redis.sentinels import open_blocking

# Answers stored at once: few enough that Redis serves others in between.
_BATCH = 200
_REPLY_SECONDS = 2.0

Answer = tuple[str, str, bytes]  # area, canonical query, encoded body


class WarmError(Exception):
    """The cache was away, refused, or took too long. What was stored until then stays."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to warm, for one call of `warm`."""

    release: str  # id
    ttl: int  # of the entries, in seconds
    seconds: float  # within which all must be stored


def warm(url: str, plan: Plan, answers: Iterable[Answer], progress: Callable[[int], None]) -> int:
    """Stores the answers. Returns how many. `progress` is told how many are stored so far.

    Raises:
        WarmError: if not all could be stored.
    """
    deadline = time.monotonic() + plan.seconds
    stored = 0
    try:
        with open_blocking(url, _REPLY_SECONDS) as client:
            for batch in batched(answers, _BATCH):
                if time.monotonic() > deadline:
                    raise WarmError(f"warming took longer than {plan.seconds:g} s; {stored:,} answers are in the cache")
                _store(client, plan, batch)
                stored += len(batch)
                progress(stored)
    except (RedisError, StoreUnavailable, OSError) as error:
        raise WarmError(f"the cache took {stored:,} answers, then: {error}") from None
    return stored


def _store(client: Redis, plan: Plan, batch: list[Answer]) -> None:
    """Raises the first error of Redis as the server words it: the client would add the whole command."""
    with client.pipeline(transaction=False) as pipeline:
        for area, query, body in batch:
            key = cache_key(plan.release, area, query)
            pipeline.set(key.name, envelope.encode_entry(CacheEntry.of(body), key.digest), ex=plan.ttl)
        for reply in pipeline.execute(raise_on_error=False):
            if isinstance(reply, Exception):
                raise reply
