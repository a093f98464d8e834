"""Look-ups in a cluster of doubles: each is reported once, in time, and the truth, whatever the nodes do."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from time import monotonic
from types import SimpleNamespace

import pytest

from config.server_lists import server_list
from service.base import timeouts
from service.redis.client import FAILURES_TO_OPEN
from service.redis.cluster import store as store_module
from service.redis.cluster.slots import SLOTS, slot_of
from service.redis.cluster.store import ClusterStore
from service.redis.errors import StoreRefused, StoreUnavailable
from service.redis.pipelined import Call, value
from tests.service.redis.cluster.conftest import BUDGET
from tests.support.cluster_double import ClusterDouble, NodeDouble
from tests.support.virtual import VirtualLoop
from tests.support.waiting import PATIENCE, eventually, settled

Value = bytes | StoreUnavailable | None
NAME = "c:name"


class Asker:
    def __init__(self, store: ClusterStore) -> None:
        self.store = store

    def send(self, *names: str) -> list["asyncio.Future[bytes | None]"]:
        return [self.store.send(name, ("GET", name), value) for name in names]

    async def one(self, name: str) -> Value:
        return (await self.many([name]))[0]

    async def many(self, names: list[str]) -> list[Value]:
        results = await asyncio.wait_for(asyncio.gather(*self.send(*names), return_exceptions=True), PATIENCE)
        assert all(one is None or isinstance(one, bytes | StoreUnavailable) for one in results)
        return results  # type: ignore[return-value]  # as asserted


@pytest.fixture
async def asker(store: ClusterStore) -> Asker:
    return Asker(store)


@pytest.fixture
async def hurried(cluster: ClusterDouble) -> AsyncIterator[Asker]:
    """With the budget of an instance."""
    store = ClusterStore("cache", cluster.listed, 0.05)
    await store.start()
    yield Asker(store)
    await store.stop()


def fill(cluster: ClusterDouble, names: list[str]) -> None:
    for name in names:
        cluster.owner(name).data.set(name, name)


def gets(node: NodeDouble) -> int:
    return b"".join(node.reads).count(b"\r\nGET\r\n")


async def test_each_name_is_found_at_its_node(cluster: ClusterDouble, asker: Asker) -> None:
    names = [f"c:{number}" for number in range(40)]
    fill(cluster, names[:30])
    await asker.many(names)  # the connections are open from now on
    for node in cluster.nodes:
        node.reads.clear()
    assert await asker.many(names) == [*(name.encode() for name in names[:30]), *[None] * 10]
    assert [len(node.reads) for node in cluster.nodes] == [1, 1, 1]
    assert sum(map(gets, cluster.nodes)) == 40


async def test_a_slot_that_moved_is_followed_once(cluster: ClusterDouble, asker: Asker) -> None:
    old, new = cluster.owner(NAME), cluster.other(NAME)
    await asker.one(NAME)
    cluster.known = cluster.slots()
    cluster.move([slot_of(NAME)], new)
    new.data.set(NAME, "moved")
    before = gets(old)
    assert await asker.one(NAME) == b"moved"
    assert gets(old) == before + 1
    assert await asker.one(NAME) == b"moved"
    assert gets(old) == before + 1


async def test_a_slot_that_is_moving_is_asked_for_where_it_goes(cluster: ClusterDouble, asker: Asker) -> None:
    old, new = cluster.owner(NAME), cluster.other(NAME)
    old.data.set(NAME, "old")
    cluster.begin_moving(NAME, new)
    assert await asker.one(NAME) == b"old"
    old.data.delete(NAME)
    new.data.set(NAME, "new")
    assert await asker.one(NAME) == b"new"
    new.reads.clear()
    assert await asker.one(NAME) == b"new"
    assert new.reads == [b"*1\r\n$6\r\nASKING\r\n*2\r\n$3\r\nGET\r\n$6\r\nc:name\r\n"]
    assert await asker.one(NAME) == b"new"


async def test_an_unknown_node_is_found_by_a_redirection(cluster: ClusterDouble, asker: Asker) -> None:
    newcomer = NodeDouble(cluster)
    await newcomer.start()
    cluster.begin_moving(NAME, newcomer)
    newcomer.data.set(NAME, "there")
    assert await asker.one(NAME) == b"there"
    await newcomer.stop()


async def test_look_ups_that_are_sent_round_in_circles_come_to_an_end(cluster: ClusterDouble, asker: Asker) -> None:
    first, second, _ = cluster.nodes
    first.says = lambda words: f"MOVED 1 {second.node}" if words[0] == "GET" else None
    second.says = lambda words: f"ASK 1 {first.node}" if words[0] == "GET" else None
    began = monotonic()
    reported = await asker.many(cluster.names_of(first, 5) + cluster.names_of(second, 5))
    assert all("too often" in str(value) for value in reported)
    assert monotonic() - began < 5
    assert gets(first) + gets(second) <= 10 * 5


@pytest.mark.parametrize(
    "error", ["CLUSTERDOWN The cluster is down", "TRYAGAIN x", "NOPERM no", "MOVED", "MOVED 1 ?:1"]
)
async def test_every_other_error_reaches_its_own_caller(cluster: ClusterDouble, asker: Asker, error: str) -> None:
    node = cluster.nodes[0]
    before, wrong, after = cluster.names_of(node, 3)
    fill(cluster, [before, wrong, after])
    node.says = lambda words: error if words == ["GET", wrong] else None
    for _ in range(FAILURES_TO_OPEN + 1):
        reported = await asker.many([before, wrong, after])
        assert reported[::2] == [before.encode(), after.encode()]
        assert isinstance(reported[1], StoreRefused)
    assert not asker.store.is_unreachable


async def test_a_silent_node_costs_only_its_slots_their_budget(cluster: ClusterDouble, hurried: Asker) -> None:
    silent, *others = cluster.nodes
    mine, theirs = cluster.names_of(silent, 3), [cluster.names_of(node, 1)[0] for node in others]
    fill(cluster, [*mine, *theirs])
    await eventually(lambda: _all_found(hurried, [*mine, *theirs]))
    silent.goes.clear()
    node_store = hurried.store._nodes[silent.node]
    while not node_store.is_unreachable:
        reported = await hurried.many([*mine, *theirs])
        assert all(isinstance(value, StoreUnavailable) for value in reported[:3])
    await eventually(lambda: _all_found(hurried, theirs))
    asked = gets(silent)
    assert all(isinstance(value, StoreUnavailable) for value in await hurried.many(mine))
    assert gets(silent) == asked
    silent.goes.set()
    await eventually(lambda: _all_found(hurried, mine))


async def _all_found(asker: Asker, names: list[str]) -> bool:
    """On a busy machine a look-up with a small budget may find nothing."""
    return await asker.many(names) == [name.encode() for name in names]


async def test_a_late_reply_reaches_no_other_caller(cluster: ClusterDouble, store: ClusterStore, asker: Asker) -> None:
    node = cluster.nodes[0]
    late, *others = cluster.names_of(node, 5)
    fill(cluster, [late, *others])
    assert await asker.one(late) == late.encode()
    await eventually(lambda: store._late._alarm is None)
    store.timeout = 0.02  # of look-ups alone: the connection waits longer
    node.goes.clear()
    assert "in time" in str(await asker.one(late))
    store.timeout = BUDGET
    pending = asyncio.ensure_future(asker.many(others))
    await asyncio.sleep(0)
    node.goes.set()
    assert await pending == [name.encode() for name in others]
    assert store.healthy


async def test_a_slot_without_a_node_fails_at_once(cluster: ClusterDouble, asker: Asker) -> None:
    store = asker.store
    cluster.known = [each for each in cluster.slots() if each[0] != 0]
    store._old.set()
    await eventually(lambda: bool(store.unreachable_parts))
    (name,) = cluster.names_of(cluster.nodes[0], 1)
    fill(cluster, [name])
    assert "no node has the slot" in str(await asker.one(name))
    assert (store.healthy, store.is_unreachable) == (False, False)
    cluster.known = None
    await eventually(lambda: _all_found(asker, [name]))
    assert store.healthy


async def test_stopping_leaves_no_caller_waiting(cluster: ClusterDouble, asker: Asker) -> None:
    cluster.nodes[0].goes.clear()
    (name,) = cluster.names_of(cluster.nodes[0], 1)
    [waiting] = asker.send(name)
    await settled()
    await asker.store.stop()
    results = await asyncio.gather(waiting, *asker.send(name), return_exceptions=True)
    assert all(isinstance(one, StoreUnavailable) for one in results)


@pytest.mark.parametrize(("share", "ended"), [(0.6, {b"value"}), (0.9, {b"value"}), (1.2, {"late"})])
def test_any_number_of_calls_end_in_time(
    share: float, ended: set[bytes | str], monkeypatch: pytest.MonkeyPatch
) -> None:
    timeout, sent = 0.05, deque[Call]()

    async def work() -> list[bytes | str | None]:
        loop = asyncio.get_running_loop()
        for module in (store_module, timeouts):
            monkeypatch.setattr(module, monotonic.__name__, loop.time)
        listed = server_list("redis+cluster://127.0.0.1:1")
        assert listed is not None
        store = ClusterStore("cache", listed, timeout)
        store.owners = [SimpleNamespace(line=SimpleNamespace(send=sent.append))] * SLOTS  # type: ignore[list-item]
        answers = []
        for number in range(100):
            answers += Asker(store).send(f"name {number}")
            loop.call_later(share * timeout, lambda: sent.popleft().settle(b"value"))
            await asyncio.sleep(0.002)
        await asyncio.sleep(2 * timeout)
        assert all(answer.done() for answer in answers)
        return ["late" if answer.exception() else answer.result() for answer in answers]

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert set(runner.run(work())) == ended
