"""A Redis Cluster: who has which slot, a breaker for each node, and commands that find their node.

The library's cluster client is not used: it sends ASKING on another connection than the command that follows, and makes
all slots wait while it learns that one primary is gone.
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any

from config.server_lists import Node, ServerList
from service.base.tasks import end_task, hold_until_done, keep_running
from service.redis.client import PROBE_SECONDS, RedisStore, checked, open_client
from service.redis.cluster.gets import Lookup, NodeGets
from service.redis.cluster.routing import MOST_REDIRECTS, Leg, Routing
from service.redis.cluster.slots import SLOTS, Redirect, SlotMap, redirect, slot_map, slot_of
from service.redis.errors import StoreUnavailable
from service.redis.name_store import NameCommand, named_command

log = logging.getLogger("forecast.redis")

# For a map, which nobody waits for; of a cluster with many ranges it is large.
_MAP_SECONDS = 1.0
_LOOK_SECONDS = 10.0
# At least between two looks, however many replies say that the map is old.
_PAUSE_SECONDS = 0.2
# After this time, a node that has no slots any more, and that nobody was sent to, is forgotten.
_FORGET_SECONDS = 60.0
# More than any cluster has. A node that lies must not make us open connections without end.
_MOST_NODES = 1_000
# How the error begins of a cluster that serves nothing.
_CLUSTER_DOWN = "CLUSTERDOWN"


class ClusterNode:
    """One node of a ClusterStore, which stops it."""

    def __init__(self, address: Node, store: RedisStore, gets: NodeGets) -> None:
        self.address = address
        self.store = store
        self.gets = gets
        self.used = monotonic()  # when it last had slots, or somebody was sent to it

    async def stop(self) -> None:
        await self.gets.stop()
        await self.store.stop()


class ClusterStore:
    """The nodes of one cluster. Whoever opens one starts and stops it; a worker's live as long as the worker.

    `timeout`, in seconds, is for each command at a node. A node that is away costs only its slots.
    """

    def __init__(self, name: str, listed: ServerList, timeout: float) -> None:
        self.name = name
        self.timeout = timeout
        self._listed = listed
        self._nodes: dict[Node, ClusterNode] = {}
        self.owners: list[ClusterNode | None] = [None] * SLOTS  # of each slot, kept up to date
        self._primaries: list[ClusterNode] = []
        self._replicas: frozenset[Node] = frozenset()
        self._uncovered = SLOTS
        self._looks = 0
        self._old = asyncio.Event()  # the map seems to be old
        self._known = asyncio.Event()  # there is a map
        self._starting: set[asyncio.Task[None]] = set()
        self._following: asyncio.Task[None] | None = None

    @property
    def healthy(self) -> bool:
        return not self._uncovered and all(node.store.healthy for node in self._primaries)

    @property
    def is_away(self) -> bool:
        for node in self._primaries:  # noqa: SIM110 - each request asks, and the first one is hardly ever away
            if not node.store.is_away:
                return False
        return True

    @property
    def parts_away(self) -> tuple[str, ...]:
        """What of the cluster cannot be asked, in words: nodes, and slots that no node has."""
        away = [str(node.address) for node in self._primaries if not node.store.healthy]
        if self._primaries and self._uncovered:
            away.append(f"no node for {self._uncovered:,} slots")
        return tuple(away)

    @property
    def nodes(self) -> Sequence[ClusterNode]:
        """Those that have slots."""
        return self._primaries

    @property
    def servers(self) -> Sequence[RedisStore]:
        return [node.store for node in self._primaries]

    async def start(self) -> None:
        """Learns who has which slot. If nobody says it within a second, it goes on trying. Twice is once."""
        if self._following is not None:
            return
        self._old.set()
        self._following = keep_running(f"follow the slots of the {self.name}", self._follow)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._known.wait(), _MAP_SECONDS)

    async def stop(self) -> None:
        await end_task(self._following)
        if self._starting:
            await asyncio.wait(self._starting)
        await asyncio.gather(*(node.stop() for node in self._nodes.values()))

    def server_of(self, name: str) -> str:
        node = self.owners[slot_of(name)]
        return self.name if node is None else node.store.name

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

    def without_node(self) -> str:
        """A slot that was asked for has no node. Returns that in words."""
        self._old.set()
        return "no node has the slot"

    async def pipelined(self, commands: Sequence[NameCommand]) -> list[Any]:
        routing = Routing(commands, self.owners.__getitem__, self._sent_to)
        end = monotonic() + self.timeout
        more = True
        while more and monotonic() < end:
            await asyncio.gather(*(self._run(routing, node, legs) for node, legs in routing.legs()))
            more = routing.next_round()
        return routing.replies()

    async def unlink(self, names: Sequence[bytes]) -> int:
        replies = await self.pipelined([named_command("UNLINK", name) for name in names])
        return sum(checked(self.name, reply) for reply in replies)

    async def _run(self, routing: Routing[ClusterNode], node: ClusterNode, legs: list[Leg]) -> None:
        try:
            replies = await node.store.pipelined([NameCommand("", words) for words in routing.words(legs)])
        except StoreUnavailable as error:
            self._old.set()
            routing.fail(legs, error)
        else:
            routing.take(legs, replies, node.address)

    def _refused(self, node: Node, lookup: Lookup, error: str) -> bool:
        """Whether a look-up that `node` answered with an error is on its way to another one."""
        if error.startswith(_CLUSTER_DOWN):
            self._old.set()
        there = redirect(error, node)
        if there is None or lookup.redirects >= MOST_REDIRECTS:
            return False
        if lookup.found is None:
            return True  # its time is up
        to = self._sent_to(slot_of(lookup.name), there)
        if to is None:
            return False
        lookup.redirects += 1
        lookup.asking = there.asking
        to.gets.ask(lookup)
        return True

    def _sent_to(self, slot: int, there: Redirect) -> ClusterNode | None:
        """The node that a redirection names; None if there are too many. Notes that a slot has moved."""
        node = self._node(there.to)
        if node is not None:
            node.used = monotonic()
            if not there.asking:
                self.owners[slot] = node
                self._old.set()
        return node

    def _node(self, address: Node) -> ClusterNode | None:
        node = self._nodes.get(address)
        if node is None and len(self._nodes) < _MOST_NODES:
            url = self._listed.server_url(address)
            store = RedisStore(f"{self.name} node {address}", url, open_client(url, timeout=self.timeout))
            gets = NodeGets(store, lambda lookup, error: self._refused(address, lookup, error), self._old.set)
            node = self._nodes[address] = ClusterNode(address, store, gets)
            hold_until_done(asyncio.create_task(store.start(), name=f"start {store.name}"), self._starting)
        return node

    async def _follow(self) -> float:
        """Looks who has which slot, when the map seems to be old, or something is wrong, or it is time to."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._old.wait(), _LOOK_SECONDS if self.healthy else PROBE_SECONDS)
        self._old.clear()
        for address in self._to_ask():
            try:
                found = await ask_slots(self._listed.server_url(address), address)
            except StoreUnavailable as error:
                log.debug("%s: no map of slots: %s", self.name, error)
                continue
            await self._use(found)
            break
        return _PAUSE_SECONDS

    def _to_ask(self) -> Iterator[Node]:
        """Who may know the map: another one first each time, because a node that was cut off knows an old one."""
        self._looks += 1
        known = sorted(self._primaries, key=lambda node: node.store.is_away)
        there = [node.address for node in known if not node.store.is_away]
        turn = self._looks % len(there) if there else 0
        gone = [node.address for node in known if node.store.is_away]
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


async def ask_slots(url: str, address: Node) -> SlotMap:
    """Who has which slot, as the node at `url` says.

    Raises:
        StoreUnavailable: if it does not say so, or knows of no slots.
    """
    store = RedisStore(f"node {address}", url, open_client(url, timeout=_MAP_SECONDS))
    try:
        said = await store.pipelined([NameCommand("", ("CLUSTER", "SLOTS"))])
        found = slot_map(said[0], address)
    except ValueError as error:
        raise StoreUnavailable(f"{store.name}: {error}") from None
    finally:
        await store.stop()
    if not found.primaries:
        raise StoreUnavailable(f"{store.name}: it knows of no slots")
    return found
