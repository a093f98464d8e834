"""Puts the answers of a release into the shared cache before it goes live, so that the hit rate does not dip."""

import time
from collections.abc import Callable, Iterable

import msgspec
from redis.exceptions import RedisError

from config.text import first_line
from service.base.batched import batched
from service.cache import entry as envelope
from service.cache.entry import CacheEntry
from service.cache.key import cache_key
from service.redis.errors import StoreRefused, StoreUnavailable
from service.redis.name_store import NameCommand
from service.redis.opening import CacheStore, opened

# Answers stored at once: few enough that Redis serves other clients in between.
_BATCH = 200
_REPLY_SECONDS = 2.0

Answer = tuple[str, str, bytes]  # area, canonical query, encoded body


class WarmError(Exception):
    """The cache was unreachable, refused, or took too long. Answers stored until then stay."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of one call of `warm`."""

    release: str  # id
    ttl: int  # of the entries, in seconds
    seconds: float  # time limit


async def warm(url: str, plan: Plan, answers: Iterable[Answer], progress: Callable[[int], None]) -> int:
    """Stores the answers. Returns how many. `progress` is called with the number stored so far.

    Raises:
        WarmError: if not all could be stored; in a cluster, the reachable nodes have theirs.
    """
    deadline = time.monotonic() + plan.seconds
    stored = given = 0
    away: StoreUnavailable | None = None
    try:
        async with opened("shared cache", url, _REPLY_SECONDS) as store:
            for batch in batched(answers, _BATCH):
                if time.monotonic() > deadline:
                    raise WarmError(f"warming took longer than {plan.seconds:g} s; {stored:,} answers are in the cache")
                lost = await _store(store, plan, batch)
                away = lost[0] if lost else away
                given += len(batch)
                stored += len(batch) - len(lost)
                progress(stored)
    except (RedisError, StoreUnavailable) as error:
        raise WarmError(f"the cache stored {stored:,} answers, then: {error}") from None
    if away is not None:
        raise WarmError(f"the cache stored {stored:,} of {given:,} answers; {first_line(away)}")
    return stored


async def _store(store: CacheStore, plan: Plan, batch: list[Answer]) -> list[StoreUnavailable]:
    """Returns the errors of entries that were not stored. Raises StoreRefused if a server refused one."""
    commands = []
    for area, query, body in batch:
        key = cache_key(plan.release, area, query)
        entry = envelope.encode_entry(CacheEntry.of(body), key.digest)
        commands.append(NameCommand(key.name, ("SET", key.name, entry, "EX", plan.ttl)))
    lost = []
    for reply in await store.pipelined(commands):
        if isinstance(reply, StoreRefused):
            raise reply
        if isinstance(reply, StoreUnavailable):
            lost.append(reply)
    return lost
