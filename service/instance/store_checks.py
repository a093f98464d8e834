"""Checks the two Redis stores of an instance every few seconds: each may be replaced, reconfigured or fill up."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import msgspec

from service.base.ipc import Endpoints, WorkerReport
from service.base.tasks import end_task, keep_running, wait_until_set
from service.instance.trail_watch import TrailWatch
from service.keys.reader import every_key
from service.keys.record import ApiKey
from service.keys.store import KeyStore
from service.operators.overview import EventKind, Keys, Store, StoreNode
from service.redis.client import RedisStore
from service.redis.cluster.store import ClusterNode, ClusterStore
from service.redis.errors import StoreUnavailable
from service.redis.opening import CacheStore, cache_place, open_cache
from service.redis.primary import Primary, open_store
from service.redis.server import ServerFacts, read_server_facts, wrong_for_cache, wrong_for_keys

log = logging.getLogger("forecast.stores")

_TIMEOUT_SECONDS = 1.0
_LOOK_SECONDS = 5.0
# Long, because counting reads all keys.
_COUNT_SECONDS = 600.0
_RETRY_SECONDS = 30.0
_PAUSE_FACTOR = 20.0


class StoreChecks:
    """The checks of one instance, owned by its supervisor. `problems` are settings that operators must change.

    A store that is unreachable or forbids the check is not a problem. `keys` counts keys that expire soon.
    """

    def __init__(
        self, endpoints: Endpoints, data: Path, happened: Callable[[EventKind, str], None] = lambda _kind, _text: None
    ) -> None:
        self.problems: tuple[str, ...] = ()
        self.keys = Keys()
        keys_at, cache_at = Primary(endpoints.keys_url), cache_place(endpoints.cache_url)
        self._places = keys_at, cache_at
        self._keys = open_store("key store", keys_at, timeout=_TIMEOUT_SECONDS)
        self._cache = open_cache("cache", cache_at, timeout=_TIMEOUT_SECONDS)
        self._key_store = KeyStore(self._keys, endpoints.pepper, data)
        self.trail = TrailWatch(self._key_store, happened)
        self._known: dict[str, ServerFacts | None] = {}
        self._latency: dict[str, float | None] = {}  # seconds; None while a store is unreachable

    async def start(self) -> None:
        await asyncio.gather(*(primary.start() for primary in self._places))
        await asyncio.gather(self._keys.start(), self._cache.start())
        self._tasks = (
            keep_running("look at the stores", self._look),
            keep_running("count keys that end soon", self._count_keys),
            keep_running("follow the audit trail", self.trail.look),
        )

    async def stop(self) -> None:
        for task in self._tasks:
            await end_task(task)
        for part in (self._keys, self._cache, *self._places):
            await part.stop()

    def stores(self, reports: Sequence[WorkerReport]) -> tuple[Store, ...]:
        """Returns the last state of both stores. Workers report whether a store is up, because they notice first."""
        keys = self._shown(self._keys, "keys", [report.keys_up for report in reports])
        cache = self._shown(self._cache, "cache", [report.cache_up for report in reports])
        down = {node for report in reports for node in report.cache_away}
        if isinstance(self._cache, ClusterStore):
            cache = msgspec.structs.replace(cache, nodes=tuple(self._node(node, down) for node in self._cache.servers))
        return msgspec.structs.replace(keys, pushed=sum(report.push_connected for report in reports)), cache

    def _shown(self, store: CacheStore, name: Literal["keys", "cache"], reached: list[bool]) -> Store:
        """Returns a store's state. A cluster's memory is that of all nodes; its latency is that of the slowest."""
        facts = [found for found in (self._known.get(server.name) for server in store.servers) if found is not None]
        latencies = [self._latency.get(server.name) for server in store.servers]
        slowest = None if None in latencies or not latencies else max(filter(None, latencies), default=0.0)
        up = all(reached) if reached else slowest is not None
        limits = [found.maxmemory for found in facts]
        return Store(
            name=name,
            up=up,
            memory=sum(found.used for found in facts) if facts else None,
            memory_limit=sum(limits) if limits and all(limits) else None,
            evicted=sum(found.evicted for found in facts) if facts else None,
            latency=slowest if up else None,
        )

    def _node(self, node: ClusterNode, down: Collection[str]) -> StoreNode:
        facts, latency = self._known.get(node.name), self._latency.get(node.name)
        name = str(node.address)
        return StoreNode(
            node=name,
            up=latency is not None and name not in down,
            memory=facts.used if facts is not None else None,
            memory_limit=facts.maxmemory or None if facts is not None else None,
            evicted=facts.evicted if facts is not None else None,
            latency=latency,
        )

    async def _look(self) -> float:
        keys = await self._query(self._keys)
        caches = await asyncio.gather(*(self._query(server) for server in self._cache.servers))
        shared = keys is not None and any(cache is not None and cache.run_id == keys.run_id for cache in caches)
        problems = wrong_for_keys(keys, shared=shared) if keys is not None else []
        for server, cache in zip(self._cache.servers, caches, strict=False):
            if cache is not None:
                at = server.name if isinstance(self._cache, ClusterStore) else ""
                problems += wrong_for_cache(cache, shared=shared, at=at)
        for problem in problems:
            if problem not in self.problems:
                log.warning("%s", problem)
        if self.problems and not problems:
            log.info("the stores are configured correctly now")
        self.problems = tuple(problems)
        return _LOOK_SECONDS

    async def _query(self, store: RedisStore) -> ServerFacts | None:
        """Returns the store's facts; while it is unreachable, the last ones."""
        began = time.perf_counter()
        try:
            server = await read_server_facts(store)
        except StoreUnavailable as error:
            self._latency[store.name] = None
            log.debug("not checked: %s", error)
            return self._known.get(store.name)
        self._latency[store.name] = time.perf_counter() - began
        self._known[store.name] = server
        return server

    async def _count_keys(self) -> float:
        """Counts active keys that expire soon, then waits for a change of a key or for ten minutes. Returns the seconds
        to pause, so that a large store is not read all the time."""
        self.trail.changed.clear()
        began, now = time.perf_counter(), datetime.now(UTC)
        try:
            ends = [
                key.expires_at
                async for key in every_key(self._key_store)
                if isinstance(key, ApiKey) and key.expires_at is not None and key.status(now) == "active"
            ]
        except StoreUnavailable:
            self.keys = Keys()
            return _RETRY_SECONDS
        within = [sum(end <= now + timedelta(days=days) for end in ends) for days in (7, 30)]
        self.keys = Keys(expire_within_7_days=within[0], expire_within_30_days=within[1])
        took = time.perf_counter() - began
        await wait_until_set(self.trail.changed, _COUNT_SECONDS)
        return took * _PAUSE_FACTOR
