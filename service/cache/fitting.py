"""Chooses the answers of a release that a small shared cache can hold: those that it was asked for most."""

from collections.abc import Iterable, Sequence

import msgspec
from redis.exceptions import RedisError

from config.text import format_bytes
from service.base.batched import batched
from service.cache.entry import WORTH_COMPRESSING_BYTES
from service.cache.key import cache_key
from service.cache.warm import Answer
from service.redis.errors import StoreUnavailable
from service.redis.name_store import NameCommand
from service.redis.opening import CacheStore, opened
from service.redis.server import read_server_facts

_REPLY_SECONDS = 2.0
_BATCH = 1000
# Memory of an entry besides its body, and the gzipped share of a body: measured with Valkey 9 and real figures.
_OVERHEAD_BYTES = 220
_GZIPPED_SHARE = 0.25
# The share of the memory to fill: the previous release answers until the switch.
_SHARE = 0.5

_Name = tuple[str, str]  # area, canonical query


class Fit(msgspec.Struct, frozen=True):
    """The answers to warm in a cache that cannot hold all, and the sizes in bytes."""

    chosen: frozenset[_Name]
    whole: int  # of all answers
    limit: int  # of the cache: maxmemory

    def __str__(self) -> str:
        limit = format_bytes(self.limit)
        return f"all answers take about {format_bytes(self.whole)}, and the cache's maxmemory is {limit}"


async def fit_to_memory(url: str, used_in: Sequence[str], answers: Iterable[Answer]) -> Fit | None:
    """Returns the answers that fit, or None if all do or the limit is unknown. `answers` is iterated once.

    The most used come first, by the use of their entries of the releases `used_in`; then the others, in their order.
    """
    try:
        async with opened("shared cache", url, _REPLY_SECONDS) as store:
            servers = [await read_server_facts(server) for server in store.servers]
            limits = [server.maxmemory for server in servers if server is not None]
            if len(limits) < len(servers) or not all(limits):
                return None
            sizes = {(area, query): _size(body) for area, query, body in answers}
            whole, limit = sum(sizes.values()), sum(limits)
            if whole <= limit:
                return None
            by_use = all(server is not None and "lfu" in server.policy for server in servers)
            used: dict[_Name, int] = {}
            for release in used_in:
                used |= await _uses(store, release, sizes, "FREQ" if by_use else "IDLETIME")
    except (RedisError, StoreUnavailable):  # warming reports it
        return None
    sign = -1 if by_use else 1
    order = sorted(sizes, key=lambda name: (name not in used, sign * used.get(name, 0)))
    chosen, room = set(), limit * _SHARE
    for name in order:
        room -= sizes[name]
        if room < 0:
            break
        chosen.add(name)
    return Fit(frozenset(chosen), whole, limit)


def _size(body: bytes) -> int:
    gzipped = len(body) * _GZIPPED_SHARE if len(body) >= WORTH_COMPRESSING_BYTES else 0
    return int(len(body) + gzipped) + _OVERHEAD_BYTES


async def _uses(store: CacheStore, release: str, names: Iterable[_Name], what: str) -> dict[_Name, int]:
    """Returns how often (FREQ) or how long ago (IDLETIME) each entry of the release in the cache was used."""
    found: dict[_Name, int] = {}
    for batch in batched(names, _BATCH):
        keys = [cache_key(release, *name).name for name in batch]
        replies = await store.pipelined([NameCommand(key, ("OBJECT", what, key)) for key in keys])
        found |= {name: reply for name, reply in zip(batch, replies, strict=True) if isinstance(reply, int)}
    return found
