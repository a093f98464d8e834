"""The configuration of a Redis: whether it persists writes, and its policy when it is full."""

from typing import Any

import msgspec

from service.redis.client import RedisStore
from service.redis.errors import StoreRefused

# From this version on, WAITAOF confirms that a change is on disk, however often the server writes by itself.
_CONFIRMS_SINCE = (7, 2)
# The memory limit that the owner of an embedded server sets when its disk is full: it then rejects all but urgent
# writes. Only we set this value.
DISK_FULL_BYTES = 1021


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One server's configuration and state, at one time."""

    run_id: str  # the same for two URLs of one server
    version: tuple[int, ...]  # major, minor
    policy: str  # maxmemory-policy
    maxmemory: int  # bytes; 0: no limit
    used: int  # bytes that count towards maxmemory
    evicted: int = 0  # keys, since it started
    appendonly: bool
    appendfsync: str | None  # None where the user may not read it
    disk_full: str = ""  # the folder whose disk is full, if its owner set DISK_FULL_BYTES
    disk_refuses: bool  # the last write to its append-only file failed
    read_only: bool  # a replica that rejects writes

    @property
    def refuses_when_full(self) -> bool:
        return self.maxmemory > 0 and self.policy == "noeviction"

    @property
    def syncs(self) -> bool:
        """Whether confirmed writes are on disk."""
        if self.appendfsync == "everysec":
            return self.version >= _CONFIRMS_SINCE
        return self.appendfsync != "no"


async def read_server_facts(store: RedisStore) -> ServerFacts | None:
    """Returns None where the user may not query this, or the reply is unexpected. Raises StoreUnavailable."""
    try:
        said: Any = await store.call(lambda client: client.info())
    except StoreRefused:
        return None
    try:
        return _server(said, await _configured(store))
    except (LookupError, TypeError, ValueError, AttributeError):
        return None


async def _configured(store: RedisStore) -> dict[str, str]:
    """Returns the configuration; empty where the user may not read it."""
    try:
        said = await store.call(lambda client: client.config_get("appendfsync", "dir"))
    except StoreRefused:
        return {}
    return {str(name): str(value) for name, value in said.items()}


def _server(said: dict[str, Any], configured: dict[str, str]) -> ServerFacts:
    limit = int(said["maxmemory"])
    return ServerFacts(
        run_id=str(said["run_id"]),
        version=tuple(int(part) for part in str(said["redis_version"]).split(".")[:2]),
        policy=str(said["maxmemory_policy"]),
        maxmemory=0 if limit == DISK_FULL_BYTES else limit,
        used=int(said["used_memory"]) - int(said.get("mem_not_counted_for_evict", 0)),
        evicted=int(said.get("evicted_keys", 0)),
        appendonly=int(said["aof_enabled"]) == 1,
        appendfsync=configured.get("appendfsync"),
        disk_full=configured.get("dir", "its folder") if limit == DISK_FULL_BYTES else "",
        disk_refuses=said.get("aof_last_write_status", "ok") != "ok",
        read_only=said["role"] == "slave" and int(said.get("slave_read_only", 1)) == 1,
    )


def disk_full(folder: str) -> str:
    """Returns the problem, and what to do."""
    works = "keys can be revoked and rotated while the reserved space lasts; all other writes wait or fail"
    return f"the disk of {folder} is full: {works}; free space there"


def wrong_for_keys(server: ServerFacts, *, shared: bool = False) -> list[str]:
    """Returns why a key store on `server` may lose keys, or rejects them; `shared`: the cache is on the same server."""
    wrong = []
    if server.policy.startswith("allkeys-"):
        policy = "volatile-lfu" if shared else "noeviction"
        wrong.append(f"the key store evicts keys when it is full (maxmemory-policy is {server.policy}). Set {policy}.")
    if not server.appendonly:
        wrong.append("the key store may lose confirmed writes (appendonly is no). Set yes, and appendfsync always.")
    elif not server.syncs:
        wrong.append(f"the key store may lose confirmed writes (appendfsync is {server.appendfsync}). Set always.")
    if server.disk_full:
        wrong.append(f"the key store: {disk_full(server.disk_full)}")
    elif server.disk_refuses:
        wrong.append("the key store cannot write to its disk (aof_last_write_status)")
    if server.read_only:
        wrong.append("the key store is a read-only replica. No key can be changed, and usage waits.")
    if server.refuses_when_full and server.used >= server.maxmemory:
        wrong.append("the key store is full (maxmemory). No key can be issued, and usage waits.")
    return wrong


def wrong_for_cache(server: ServerFacts, *, shared: bool = False, at: str = "") -> list[str]:
    """Returns why a cache on `server` will stop storing answers; `shared`: the key store is on the same server.

    `at` names a node of a cluster.
    """
    if not server.refuses_when_full:
        return []
    policy = "volatile-lfu" if shared else "allkeys-lfu"
    full = "stores no answers when it is full (maxmemory-policy is noeviction)"
    return [f"the shared cache{f' at {at}' if at else ''} {full}. Set {policy}."]
