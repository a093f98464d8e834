"""A Redis Cluster: the slot map, a breaker for each node, and commands that are sent to their node.

The library's cluster client is not used: it sends ASKING on another connection than the command that follows, and makes
all slots wait while it detects the loss of one primary.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import Any, TypeVar

from config.server_lists import Node, ServerList
from service.base.tasks import end_task, hold_until_done, keep_running, wait_until_set
from service.base.timeouts import OldestFirst
from service.redis.client import PROBE_SECONDS, RedisStore
from service.redis.cluster.slots import SLOTS, SlotMap, redirect, slot_map, slot_of
from service.redis.connections import open_client
from service.redis.errors import StoreUnavailable
from service.redis.name_store import NameCommand, checked, gathered, named_command
from service.redis.pipelined import Call, Read, Words, anything, call_of, pack

T = TypeVar("T")

log = logging.getLogger("forecast.redis")

# Timeout for a map, which no request waits for. It is large if a cluster has many ranges.
_MAP_SECONDS = 1.0
_LOOK_SECONDS = 10.0
# Minimum pause between two queries, however many replies show that the map is old.
_PAUSE_SECONDS = 0.2
# After this time, a node without slots, to which no call was redirected, is dropped.
_FORGET_SECONDS = 60.0
# More than any cluster has. A faulty node must not make us open connections without limit.
_MOST_NODES = 1_000
# The start of the error of a cluster that serves no slots.
_CLUSTER_DOWN = "CLUSTERDOWN"
# Most redirections of a call: the map was old, the slot is moving, and both once more.
_MOST_REDIRECTS = 4
_ASKING = pack("ASKING")


class ClusterNode(RedisStore):
    """One node of a ClusterStore, which stops it."""

    def __init__(self, cluster: "ClusterStore", address: Node, url: str) -> None:
        super().__init__(f"{cluster.name} node {address}", url, open_client(url, timeout=cluster.timeout))
        self.address = address
        self.used = monotonic()  # when it last had slots or got a redirected call
        self._cluster = cluster

    def redirected(self, call: Call, error: str) -> bool:
        return self._cluster.redirect(call, error, self.address)

    def failed(self, error: Exception, *, answered: bool) -> StoreUnavailable:
        if not answered:
            self._cluster.doubt()
        return super().failed(error, answered=answered)


class ClusterStore:
    """The nodes of one cluster. Its opener starts and stops it; a worker's live as long as the worker.

    `timeout`, in seconds, is for each call, redirections included, and for each reply of a node. A reply that comes
    later is dropped. An unreachable node affects only its slots.
    """

    def __init__(self, name: str, listed: ServerList, timeout: float) -> None:
        self.name = name
        self.timeout = timeout
        self._listed = listed
        self._nodes: dict[Node, ClusterNode] = {}
        self.owners: list[ClusterNode | None] = [None] * SLOTS  # owner of each slot, kept up to date
        self._primaries: list[ClusterNode] = []
        self._replicas: frozenset[Node] = frozenset()
        self._uncovered = SLOTS
        self._looks = 0
        self._calls: deque[Call] = deque()  # in the order of their deadlines, including ended ones
        self._late = OldestFirst(self._due, self._end_late)
        self._old = asyncio.Event()  # the map seems to be old
        self._known = asyncio.Event()  # set once there is a map
        self._starting: set[asyncio.Task[None]] = set()
        self._following: asyncio.Task[None] | None = None

    @property
    def healthy(self) -> bool:
        """Whether every name is reachable."""
        return not self._uncovered and all(node.healthy for node in self._primaries)

    @property
    def is_unreachable(self) -> bool:
        """Whether no name is reachable, so that no call is made."""
        for node in self._primaries:  # noqa: SIM110 - each request reads this; the first node usually ends it
            if not node.is_unreachable:
                return False
        return True

    @property
    def unreachable_parts(self) -> tuple[str, ...]:
        """Unreachable parts of the cluster, in words: nodes, and slots that no node has."""
        away = [str(node.address) for node in self._primaries if not node.healthy]
        if self._primaries and self._uncovered:
            away.append(f"no node for {self._uncovered:,} slots")
        return tuple(away)

    @property
    def servers(self) -> Sequence[ClusterNode]:
        return self._primaries

    async def start(self) -> None:
        """Fetches the slot map. If no node replies within a second, it keeps trying. Idempotent."""
        if self._following is not None:
            return
        self._old.set()
        self._following = keep_running(f"follow the slots of the {self.name}", self._follow)
        await wait_until_set(self._known, _MAP_SECONDS)

    async def stop(self) -> None:
        await end_task(self._following)
        if self._starting:
            await asyncio.wait(self._starting)
        await asyncio.gather(*(node.stop() for node in self._nodes.values()))

    def server_of(self, name: str) -> str:
        node = self.owners[slot_of(name)]
        return self.name if node is None else node.name

    def one_for_each_server(self, name: str) -> Sequence[str]:
        found: dict[Node, str] = {}
        for number in range(SLOTS):  # far more than are needed: a tag's slot is as good as random
            if len(found) == len(self._primaries):
                break
            tagged = f"{name}:{{{number}}}"
            owner = self.owners[slot_of(tagged)]
            if owner is not None:
                found.setdefault(owner.address, tagged)
        return list(found.values())

    def send(
        self, name: str, words: Words, read: Read[T], learn: Callable[[Call], None] | None = None
    ) -> asyncio.Future[T]:
        call = call_of(name, words, read, learn)
        call.deadline = monotonic() + self.timeout
        node = self.owners[slot_of(name)]
        if node is None:
            self.doubt()
            call.fail(StoreUnavailable(f"{self.name}: no node has the slot"))
        else:
            self._due()  # drops ended calls
            self._calls.append(call)
            self._late.watch()
            node.line.send(call)
        return call.answer

    async def pipelined(self, commands: Sequence[NameCommand]) -> list[Any]:
        return await gathered(self.send(command.name, command.words, anything) for command in commands)

    async def unlink(self, names: Sequence[bytes]) -> int:
        replies = await self.pipelined([named_command("UNLINK", name) for name in names])
        return sum(checked(reply) for reply in replies)

    def doubt(self) -> None:
        """Notes that the map seems to be old."""
        self._old.set()

    def redirect(self, call: Call, error: str, node: Node) -> bool:
        """Returns whether a call that `node` answered with an error was redirected. Notes that a slot moved."""
        if error.startswith(_CLUSTER_DOWN):
            self.doubt()
        there = redirect(error, node)
        to = None if there is None else self._node(there.to)
        if there is None or to is None:
            return False
        if call.redirects >= _MOST_REDIRECTS:
            call.fail(StoreUnavailable(f"{self.name}: redirected too often: {error}"))
            return True
        to.used = monotonic()
        if not there.asking:
            self.owners[slot_of(call.name)] = to
            self.doubt()
        call.redirects += 1
        call.ahead = _ASKING if there.asking else b""  # if ASKING is refused, the node sends the call back
        to.line.send(call)
        return True

    def _due(self) -> float | None:
        calls = self._calls
        while calls and calls[0].answer.done():
            calls.popleft()
        return calls[0].deadline if calls else None

    def _end_late(self, until: float) -> None:
        while (due := self._due()) is not None and due <= until:
            self._calls.popleft().fail(StoreUnavailable(f"{self.name}: no reply in time"))

    def _node(self, address: Node) -> ClusterNode | None:
        node = self._nodes.get(address)
        if node is None and len(self._nodes) < _MOST_NODES:
            node = self._nodes[address] = ClusterNode(self, address, self._listed.server_url(address))
            hold_until_done(asyncio.create_task(node.start(), name=f"start {node.name}"), self._starting)
        return node

    async def _follow(self) -> float:
        """Fetches the slot map if it seems to be old, after a failure, or when it is due."""
        await wait_until_set(self._old, _LOOK_SECONDS if self.healthy else PROBE_SECONDS)
        self._old.clear()
        for address in self._map_sources():
            try:
                found = await fetch_slots(self._listed.server_url(address), address)
            except StoreUnavailable as error:
                log.debug("%s: no slot map: %s", self.name, error)
                continue
            await self._use(found)
            break
        return _PAUSE_SECONDS

    def _map_sources(self) -> Iterator[Node]:
        """Yields nodes that may know the map, from another one on each time: one that was cut off has an old map."""
        self._looks += 1
        known = sorted(self._primaries, key=lambda node: node.is_unreachable)
        there = [node.address for node in known if not node.is_unreachable]
        turn = self._looks % len(there) if there else 0
        gone = [node.address for node in known if node.is_unreachable]
        yield from dict.fromkeys((*there[turn:], *there[:turn], *self._listed.nodes, *self._replicas, *gone))

    async def _use(self, found: SlotMap) -> None:
        owners = {address: self._node(address) for address in found.primaries}
        self.owners[:] = [None if address is None else owners[address] for address in found.owners]
        self._primaries = [node for node in owners.values() if node is not None]
        self._replicas = found.replicas
        self._uncovered = self.owners.count(None)
        if self._starting:
            await asyncio.wait(self._starting)
        self._known.set()
        now = monotonic()
        for node in self._primaries:
            node.used = now
        for node in [node for node in self._nodes.values() if node.used < now - _FORGET_SECONDS]:
            del self._nodes[node.address]
            await node.stop()


async def fetch_slots(url: str, address: Node) -> SlotMap:
    """Returns which node has which slot, as the node at `url` reports.

    Raises:
        StoreUnavailable: if it does not reply, or knows no slots.
    """
    store = RedisStore(f"node {address}", url, open_client(url, timeout=_MAP_SECONDS))
    try:
        found = slot_map(await store.send("", ("CLUSTER", "SLOTS"), anything), address)
    except ValueError as error:
        raise StoreUnavailable(f"{store.name}: {error}") from None
    finally:
        await store.stop()
    if not found.primaries:
        raise StoreUnavailable(f"{store.name}: it knows no slots")
    return found
