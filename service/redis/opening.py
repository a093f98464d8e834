"""Opens the cache's store: one server, at its current primary, or a cluster."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from config.server_lists import ServerList, server_list
from service.redis.client import RedisStore
from service.redis.cluster.store import ClusterStore
from service.redis.errors import StoreUnavailable
from service.redis.primary import Primary, found_store, open_store

CacheStore = RedisStore | ClusterStore


class ClusterPlace:
    """A cluster, for all stores on it in one process; each discovers the nodes by itself."""

    def __init__(self, listed: ServerList) -> None:
        self.listed = listed

    async def start(self) -> None:
        """Starts as a Primary does."""

    async def stop(self) -> None:
        """Stops as a Primary does."""


CachePlace = Primary | ClusterPlace


def cache_place(url: str) -> CachePlace:
    """Returns where a valid `url` leads. The caller starts and stops it."""
    listed = server_list(url)
    return ClusterPlace(listed) if listed is not None and listed.kind == "cluster" else Primary(url)


def open_cache(name: str, place: CachePlace, *, timeout: float) -> CacheStore:
    """Returns a store at `place`, not connected yet. `timeout`, in seconds, is for each command."""
    if isinstance(place, ClusterPlace):
        return ClusterStore(name, place.listed, timeout)
    return open_store(name, place, timeout=timeout)


@asynccontextmanager
async def opened(name: str, url: str, seconds: float) -> AsyncIterator[CacheStore]:
    """Opens the store at a valid `url`, for one piece of work, each command of which takes at most about `seconds`.

    Raises:
        StoreUnavailable: if no majority of Sentinels names a primary, or no node of a cluster reports its slots.
    """
    place = cache_place(url)
    if isinstance(place, Primary):
        async with found_store(name, url, seconds) as store:
            yield store
        return
    cluster = ClusterStore(name, place.listed, seconds)
    try:
        await cluster.start()
        if not cluster.servers:
            raise StoreUnavailable(f"{name}: no node reports the slots")
        yield cluster
    finally:
        await cluster.stop()
