"""The contents of the shared cache: numbers for all of it, or one entry. Reading leaves it unchanged."""

import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec

from service.cache import entry as envelope
from service.cache.entry import CacheEntry
from service.cache.key import EVERY_NAME, FORMAT_VERSION, CacheKey, is_trial
from service.redis.client import RedisStore
from service.redis.errors import StoreRefused, StoreUnavailable
from service.redis.name_store import NameCommand, checked, named_command
from service.redis.opening import CacheStore

# Names that one command visits. It blocks Redis meanwhile, for some 0.2 ms.
_STEP = 500
# At most so many names are measured in each step.
_MEASURED = 10


class ReleaseEntries(msgspec.Struct):
    """The entries of one release. Sizes are estimated from a sample: in Redis' memory, with its overhead."""

    release: str | None  # id; None: entries of another version's format
    entries: int = 0
    measured: int = 0
    measured_bytes: int = 0

    @property
    def bytes(self) -> int | None:
        """Estimated size of all entries."""
        return round(self.entries * self.measured_bytes / self.measured) if self.measured else None


class ServerMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of the whole server; for a cluster, the total of its primaries."""

    used: int
    limit: int | None  # None: unlimited
    policy: str
    evicted: int  # since it started
    expired: int  # likewise
    uptime: float  # seconds; of the one that started last
    names: int  # in all databases


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """The shared cache at one time; an entry that was moved meanwhile may be missing or counted twice."""

    releases: tuple[ReleaseEntries, ...]  # newest first
    complete: bool  # False: the time was up before all names were visited
    server: ServerMemory
    away: tuple[str, ...] = ()  # why servers of a cluster are skipped


async def survey(store: CacheStore, seconds: float, progress: Callable[[int], None]) -> Contents:
    """Counts the entries for at most about `seconds`, in steps between which Redis serves other clients.

    Unreachable servers of a cluster are skipped.

    Raises:
        StoreUnavailable: if no server replies, or one refuses, or fails meanwhile.
    """
    servers, away = await _servers(store)
    found: defaultdict[str | None, ReleaseEntries] = defaultdict(lambda: ReleaseEntries(None))
    end, seen, complete = time.monotonic() + seconds, 0, True
    async for names in _every_name([server for server, _ in servers]):
        for name in names:
            found[_release_of(name)].entries += 1
        for name, size in zip(names[:_MEASURED], await _sizes(store, names[:_MEASURED]), strict=True):
            if size is not None:  # it has not expired meanwhile
                found[_release_of(name)].measured += 1
                found[_release_of(name)].measured_bytes += size
        seen += len(names)
        progress(seen)
        if time.monotonic() > end:
            complete = False
            break
    releases = sorted(found.items(), key=lambda item: item[0] or "", reverse=True)
    return Contents(
        releases=tuple(msgspec.structs.replace(entries, release=release) for release, entries in releases),
        complete=complete,
        server=_together([memory for _, memory in servers]),
        away=tuple(str(error) for error in away),
    )


async def _servers(store: CacheStore) -> tuple[list[tuple[RedisStore, ServerMemory]], list[StoreUnavailable]]:
    """Returns the servers that reply, with their memory, and the errors of the others.

    Raises StoreUnavailable if none replies.
    """
    answering: list[tuple[RedisStore, ServerMemory]] = []
    away: list[StoreUnavailable] = []
    for server in store.servers:
        try:
            answering.append((server, _memory(await server.call(lambda client: client.info()))))
        except StoreRefused:
            raise
        except StoreUnavailable as error:
            away.append(error)
    if away and not answering:
        raise away[0]
    return answering, away


async def _every_name(servers: Sequence[RedisStore]) -> AsyncIterator[list[bytes]]:
    for server in servers:
        async for names in server.scan(EVERY_NAME, _STEP):
            yield [name for name in names if not is_trial(name)]


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the shared cache under one key."""

    entry: CacheEntry | None  # None: missing or damaged
    damaged: bool
    size: int  # bytes, with the envelope
    seconds: float | None  # until it expires; None if it is missing, or the user may not read it
    counted: bool  # reading counted as a use of the entry, because the server has no other way


async def read_entry(store: CacheStore, key: CacheKey) -> Held:
    """Raises StoreUnavailable."""
    # one connection for all: NO-TOUCH applies per connection
    words = (("CLIENT", "NO-TOUCH", "ON"), ("MGET", key.name), ("PTTL", key.name), ("CLIENT", "NO-TOUCH", "OFF"))
    untouched, values, left, _ = await store.pipelined([NameCommand(key.name, each) for each in words])
    value = checked(values)[0]
    entry = None if value is None else envelope.decode(value, key.digest)
    return Held(
        entry=entry,
        damaged=value is not None and entry is None,
        size=len(value or b""),
        seconds=left / 1000 if isinstance(left, int) and left >= 0 else None,
        counted=isinstance(untouched, Exception),
    )


async def _sizes(store: CacheStore, names: list[bytes]) -> list[int | None]:
    if not names:
        return []
    commands = [named_command("MEMORY", name, "USAGE") for name in names]
    return [checked(size) for size in await store.pipelined(commands)]


def _release_of(name: bytes) -> str | None:
    version, _, rest = name.decode(errors="replace").removeprefix("c:").partition(":")
    return rest.rpartition(":")[0] if version == str(FORMAT_VERSION) else None


def _memory(said: dict[str, Any]) -> ServerMemory:
    return ServerMemory(
        used=int(said.get("used_memory", 0)),
        limit=int(said.get("maxmemory", 0)) or None,
        policy=str(said.get("maxmemory_policy", "unknown")),
        evicted=int(said.get("evicted_keys", 0)),
        expired=int(said.get("expired_keys", 0)),
        uptime=float(said.get("uptime_in_seconds", 0)),
        names=sum(int(each["keys"]) for name, each in said.items() if name.startswith("db") and isinstance(each, dict)),
    )


def _together(servers: Sequence[ServerMemory]) -> ServerMemory:
    limits = [server.limit for server in servers]
    return ServerMemory(
        used=sum(server.used for server in servers),
        limit=None if None in limits else sum(limit for limit in limits if limit is not None),
        policy=", ".join(dict.fromkeys(server.policy for server in servers)),
        evicted=sum(server.evicted for server in servers),
        expired=sum(server.expired for server in servers),
        uptime=min((server.uptime for server in servers), default=0.0),
        names=sum(server.names for server in servers),
    )
