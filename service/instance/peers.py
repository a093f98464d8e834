"""Exchanges state with the other instances on the key store once a second (registry.py): live instances, their worker
counts, and orders to purge all caches. The reply also holds the store's time, which all instances use.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable

import msgspec

from service.base.store_clock import StoreClock
from service.base.tasks import end_task, keep_running
from service.instance import registry
from service.instance.registry import BeatReply, Peer
from service.operators.overview import EventKind
from service.redis.client import RedisStore
from service.redis.errors import StoreUnavailable
from service.redis.primary import Primary

log = logging.getLogger("forecast.supervisor")

BEAT_SECONDS = 1.0
# An instance counts as ended after its record was missing this many times: a failover loses records, and each instance
# has to write its own again.
_MISSING_BEATS = 5
# A purge reaches all near caches within two seconds. The instance that orders it waits a little longer for replies.
_REACH_SECONDS = 3.0
_POLL_SECONDS = 0.2


class Peers:
    """The supervisor's view of the instances on the key store, from its start to its end.

    `purge` empties the near caches of this instance. `changed` is called after a change of the worker count or the
    clock; `happened` after a purge that another instance ordered. `primary` follows `store` through failovers. While
    the store is unreachable, the last state stays.
    """

    def __init__(
        self,
        store: RedisStore,
        me: Peer,
        purge: Callable[[], Awaitable[object]],
        changed: Callable[[], None],
        happened: Callable[[EventKind, str], None] = lambda _kind, _text: None,
        primary: Primary | None = None,
    ) -> None:
        self.clock = StoreClock()
        self._store = store
        self._primary = primary
        self._me = me
        self._purge = purge
        self._changed = changed
        self._happened = happened
        self._known: dict[str, Peer] = {}
        self._missing: dict[str, int] = {}
        self._purged: str | None = None  # the last mark that was seen; None before the first reply
        self._fresh = False  # the caches are empty before the first reply
        self._task: asyncio.Task[None] | None = None

    @property
    def others(self) -> list[Peer]:
        return list(self._known.values())

    async def start(self) -> None:
        """Beats once, before the workers start; then every second."""
        if self._primary is not None:
            await self._primary.start()
        await self._store.start()
        self._fresh = True
        await self._beat()
        self._fresh = False
        self._task = keep_running("tell other instances", self._beat_in_time)

    async def stop(self) -> None:
        await end_task(self._task)
        with contextlib.suppress(StoreUnavailable):
            await registry.leave(self._store, self._me.instance)
        await self._store.stop()
        if self._primary is not None:
            await self._primary.stop()

    async def order_purge(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Makes all other instances purge their near caches; waits up to `_REACH_SECONDS`. Purge this one before.

        Returns the ids of those that confirmed it, and of those that did not.

        Raises:
            StoreUnavailable: if the order could not be sent.
        """
        mark = f"{time.time_ns():x}"
        self._purged, self._me = mark, msgspec.structs.replace(self._me, purged=mark)
        self._take(await registry.beat(self._store, self._me, mark))
        deadline = time.monotonic() + _REACH_SECONDS
        while True:
            behind = [peer for peer in self.others if peer.purged != mark]
            if not behind or time.monotonic() > deadline:
                done = (peer.instance for peer in self.others if peer.purged == mark)
                return tuple(done), tuple(peer.instance for peer in behind)
            await asyncio.sleep(_POLL_SECONDS)
            self._take(await registry.beat(self._store, self._me))

    async def _beat_in_time(self) -> float:
        began = time.monotonic()
        await self._beat()
        return began + BEAT_SECONDS - time.monotonic()

    async def _beat(self) -> None:
        sent, purged = time.monotonic(), self._purged
        try:
            reply = await registry.beat(self._store, self._me)
        except StoreUnavailable as error:
            log.debug("cannot reach other instances: %s", error)
            return
        if self.clock.update(reply.at, sent, time.monotonic()):
            self._changed()
        self._take(reply)
        if reply.purged != self._purged == purged:  # else it is older than an order of this instance
            await self._obey(reply.purged)

    async def _obey(self, mark: str) -> None:
        self._purged = mark
        if mark and not self._fresh:
            await self._purge()
            self._happened("purge", "the near caches were purged, as another instance ordered")
        self._me = msgspec.structs.replace(self._me, purged=mark)

    def _take(self, reply: BeatReply) -> None:
        before = sum(peer.workers for peer in self._known.values())
        now = {peer.instance: peer for peer in reply.peers if peer.instance != self._me.instance}
        for instance in self._known.keys() - now.keys():
            self._missing[instance] = self._missing.get(instance, 0) + 1
            if self._missing[instance] >= _MISSING_BEATS:
                del self._known[instance]
        for instance in now:
            self._missing.pop(instance, None)
        self._known |= now
        self._missing = {instance: missed for instance, missed in self._missing.items() if instance in self._known}
        if sum(peer.workers for peer in self._known.values()) != before:
            self._changed()
