"""Look-ups by name in a cluster, each within its budget, whatever the nodes do."""

import asyncio
from collections import deque
from time import monotonic

from service.base.patience import Alarm
from service.redis.cluster.gets import Lookup, TellValue
from service.redis.cluster.slots import slot_of
from service.redis.cluster.store import ClusterStore
from service.redis.errors import StoreUnavailable


class ClusterGet:
    """Looks up values by name for the shared cache of one worker, which owns it and stops it with the worker.

    What BatchedGet is for one server. A look-up that is not answered within the store's timeout, waiting and
    redirections included, is told so; its reply is dropped when it comes.
    """

    def __init__(self, store: ClusterStore) -> None:
        self._store = store
        self._owners = store.owners
        self._asked: deque[Lookup] = deque()  # in the order of their deadlines, those that were told included
        self._alarm: Alarm | None = None
        self._due = 0.0  # the deadline that the alarm is for
        self._stopped = False

    def ask(self, name: str, found: TellValue) -> None:
        """`found` is called once, in a later turn. It must not raise; if it does, that is logged."""
        asked = self._asked
        while asked and asked[0].found is None:  # so that the alarm finds few
            asked.popleft()
        lookup = Lookup(name, found, monotonic() + self._store.timeout)
        node = self._owners[slot_of(name)]
        if node is None or self._stopped:
            why = "stopped" if self._stopped else self._store.without_node()
            asyncio.get_running_loop().call_soon(lookup.tell, StoreUnavailable(f"{self._store.name}: {why}"))
            return
        asked.append(lookup)
        if self._alarm is None:
            self._due, self._alarm = lookup.deadline, Alarm(self._store.timeout, self._look)
        node.gets.ask(lookup)

    async def stop(self) -> None:
        """Tells everybody who waits, and whoever comes later, that the store is unavailable."""
        self._stopped = True
        if self._alarm is not None:
            self._alarm.cancel()
        while self._asked:
            self._asked.popleft().tell(StoreUnavailable(f"{self._store.name}: stopped"))

    def _look(self) -> None:
        """The time of those is up that the alarm was set for: one alarm serves all."""
        asked = self._asked
        while asked and (asked[0].found is None or asked[0].deadline <= self._due):
            asked.popleft().tell(StoreUnavailable(f"{self._store.name}: no answer in time"))
        self._alarm = None
        if asked:
            self._due = asked[0].deadline
            self._alarm = Alarm(max(0.0, self._due - monotonic()), self._look)
