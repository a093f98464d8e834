"""A map that is bounded by the memory of its entries and evicts by SIEVE, which resists scans.

SIEVE: Zhang, Yang, Yue, Vigfusson, Rashmi, "SIEVE is Simpler than LRU: an Efficient Turn-Key Eviction Algorithm for
Web Caches", NSDI 2024. Entries stay in insertion order. A hit sets a bit. A hand moves from old to new, clears set
bits, and evicts the first entry without one. So an entry read once leaves soon, and one that is read again stays.
"""

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

# Share of `max_cost`. A larger entry is not kept: it would evict too many others.
LARGEST_SHARE = 1 / 16
# Entries visited in one step of a long walk: some 0.2 ms if all of them are dropped.
STEP = 500
# Bits that the hand clears for one eviction; then it evicts the entry there. The paper has no such bound. Without it, a
# single put may go round a whole map in which every entry was hit.
MOST_SPARED = 1_000


class SieveNode:
    """An entry in the ring of its `Sieve`, or the root, whose `newer` is the oldest entry and `older` the newest."""

    __slots__ = ("cost", "key", "newer", "older", "value", "visited")

    def __init__(self, key: Any, value: Any, cost: int) -> None:
        self.key = key
        self.value = value
        self.cost = cost
        self.visited = False
        self.older = self.newer = self


class Sieve(Generic[K, V]):
    """The map. Its creator owns it. It belongs to one event loop and has no locks. Costs are in bytes.

    `get`, `discard` and, amortised, `put` take constant time.
    """

    def __init__(self, max_cost: int) -> None:
        self.max_cost = max_cost  # 0 keeps no entries
        self.largest = int(max_cost * LARGEST_SHARE)
        self.cost = 0
        self.hits = 0  # of `get`
        self.evictions = 0  # evicted for lack of room
        self._nodes: dict[K, SieveNode] = {}
        self._root = self._hand = SieveNode(None, None, 0)

    def __len__(self) -> int:
        return len(self._nodes)

    def get(self, key: K) -> V | None:
        node = self._nodes.get(key)
        if node is None:
            return None
        node.visited = True
        self.hits += 1
        return node.value  # type: ignore[no-any-return]

    def put(self, key: K, value: V, cost: int) -> bool:
        """Keeps `value` as the newest entry; replaces that of `key`, whose bit it inherits. Returns whether it was
        kept.

        Raises:
            ValueError: if `cost`, in bytes, is not positive.
        """
        if cost <= 0:
            raise ValueError(f"an entry costs at least 1 byte, not {cost}")
        before = self._nodes.get(key)
        if before is not None:
            self._unlink(before)
        if cost > self.largest:
            return False
        while self.cost + cost > self.max_cost:
            self._evict()
        node = SieveNode(key, value, cost)
        node.visited = before is not None
        self._link(node)
        return True

    def discard(self, key: K) -> bool:
        """Drops the entry of `key`. Returns whether there was one."""
        node = self._nodes.get(key)
        if node is None:
            return False
        self._unlink(node)
        return True

    def clear(self) -> Iterator[int]:
        """Drops all present entries, in the steps of `discard_where`."""
        return self.discard_where(lambda _: True)

    def discard_where(self, predicate: Callable[[V], bool]) -> Iterator[int]:
        """Drops the entries for which `predicate` holds. Yields after each step how many it dropped.

        The map may change between steps. An entry that is put meanwhile may or may not be visited.
        """
        node, left = self._root.newer, len(self._nodes)
        while left > 0 and (node := self._still_there(node)) is not self._root:
            node, gone = self._walk(node, min(STEP, left), predicate)
            left -= STEP
            yield gone

    def discard_oldest_where(self, predicate: Callable[[V], bool]) -> Iterator[int]:
        """Discards entries from the oldest to the first for which `predicate` does not hold, and yields their sizes."""
        gone = STEP
        while gone == STEP:
            gone = 0
            while gone < STEP and (node := self._root.newer) is not self._root and predicate(node.value):
                self._unlink(node)
                gone += 1
            yield gone

    def _walk(self, node: SieveNode, most: int, predicate: Callable[[V], bool]) -> tuple[SieveNode, int]:
        gone = 0
        for _ in range(most):
            if node is self._root:
                break
            following = node.newer
            if predicate(node.value):
                self._unlink(node)
                gone += 1
            node = following
        return node, gone

    def _still_there(self, node: SieveNode) -> SieveNode:
        """Returns `node` or, if it was removed, the next newer node still listed.

        A removed node keeps its own links.
        """
        while node is not self._root and self._nodes.get(node.key) is not node:
            node = node.newer
        return node

    def _evict(self) -> None:
        node, root = self._hand, self._root
        for _ in range(MOST_SPARED):
            if node is root:
                node = root.newer
            if not node.visited:
                break
            node.visited = False
            node = node.newer
        if node is root:
            node = root.newer
        self._hand = node
        self._unlink(node)
        self.evictions += 1

    def _link(self, node: SieveNode) -> None:
        root, newest = self._root, self._root.older
        node.older, node.newer = newest, root
        newest.newer = root.older = node
        self._nodes[node.key] = node
        self.cost += node.cost

    def _unlink(self, node: SieveNode) -> None:
        if self._hand is node:
            self._hand = node.newer
        node.older.newer = node.newer
        node.newer.older = node.older
        del self._nodes[node.key]
        self.cost -= node.cost
