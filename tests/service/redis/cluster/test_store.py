"""A cluster of doubles behind one store: commands find their node, and the map follows what happens to it."""

import asyncio

import pytest

from service.redis.cluster import store as cluster_store
from service.redis.cluster.slots import SLOTS
from service.redis.cluster.store import ClusterStore
from service.redis.errors import StoreUnavailable
from service.redis.name_store import NameCommand, gathered
from service.redis.pipelined import anything
from service.redis.script import Script
from tests.support.cluster_double import ClusterDouble, NodeDouble
from tests.support.waiting import eventually

NAME = "c:name"
NAMES = [f"c:{number}" for number in range(60)]


def setting(name: str) -> NameCommand:
    return NameCommand(name, ("SET", name, name))


def getting(name: str) -> NameCommand:
    return NameCommand(name, ("GET", name))


async def test_commands_go_to_their_nodes_and_replies_keep_their_order(
    cluster: ClusterDouble, store: ClusterStore
) -> None:
    assert await store.pipelined([setting(name) for name in NAMES]) == [b"OK"] * 60
    assert await store.pipelined([getting(name) for name in NAMES]) == [name.encode() for name in NAMES]
    assert all(cluster.owner(name).data.exists(name) for name in NAMES)
    assert await store.unlink([name.encode() for name in (*NAMES, "c:\udcff")[:50]]) == 50


async def test_names_are_removed_except_on_an_unreachable_node(cluster: ClusterDouble, store: ClusterStore) -> None:
    await store.pipelined([setting(name) for name in NAMES])
    await cluster.nodes[0].stop()
    with pytest.raises(StoreUnavailable):
        await store.unlink([name.encode() for name in NAMES])
    assert not any(one.data.exists(name) for one in cluster.nodes[1:] for name in NAMES)


async def test_a_node_that_is_gone_fails_its_own_commands(cluster: ClusterDouble, store: ClusterStore) -> None:
    gone = cluster.nodes[0]
    mine, theirs = cluster.names_of(gone, 1)[0], cluster.names_of(cluster.nodes[1], 1)[0]
    await gone.stop()
    lost, fine = await store.pipelined([setting(mine), setting(theirs)])
    assert isinstance(lost, StoreUnavailable)
    assert fine == b"OK"
    with pytest.raises(StoreUnavailable):
        await store.pipelined([setting(mine)])
    with pytest.raises(StoreUnavailable):
        await store.send(*setting(mine), anything)


async def test_scripts_are_learned_by_each_node(cluster: ClusterDouble, store: ClusterStore) -> None:
    script = Script("service.quota", "errors.lua")
    calls = [(1, f"e:{{{number}}}", 5, 60, f"x{number}") for number in range(20)]
    assert await gathered(script.send(store, call, anything) for call in calls) == [1] * 20
    for node in cluster.nodes:
        node.reads.clear()
    assert await gathered(script.send(store, call, anything) for call in calls) == [2] * 20
    assert all(b"EVALSHA" in b"".join(node.reads) for node in cluster.nodes)
    assert not any(b"$4\r\nEVAL\r\n" in b"".join(node.reads) for node in cluster.nodes)


async def test_every_server_gets_a_name_of_its_own(cluster: ClusterDouble, store: ClusterStore) -> None:
    names = store.one_for_each_server("c:trial")
    assert {cluster.owner(name).node for name in names} == {node.node for node in cluster.nodes}
    assert len({store.server_of(name) for name in names}) == len(names) == 3


async def test_health_names_unreachable_nodes(cluster: ClusterDouble, store: ClusterStore) -> None:
    assert (store.healthy, store.is_unreachable, store.unreachable_parts) == (True, False, ())
    gone = cluster.nodes[1]
    await gone.stop()
    while store.healthy:
        await store.pipelined([setting(name) for name in NAMES])
    assert (store.is_unreachable, store.unreachable_parts) == (False, (str(gone.node),))
    for node in cluster.nodes:
        await node.stop()
    while not store.is_unreachable:
        with pytest.raises(StoreUnavailable):
            await store.pipelined([setting(name) for name in NAMES])
    for node in cluster.nodes:
        await node.start()
    await eventually(lambda: store.healthy)


async def test_a_failover_needs_no_request(
    cluster: ClusterDouble, store: ClusterStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, new = cluster.nodes[1], NodeDouble(cluster)
    await gone.stop()
    while store.healthy:
        await store.pipelined([setting(name) for name in NAMES])
    await new.start()
    cluster.move([slot for slot, owner in enumerate(cluster.owners) if owner is gone], new)
    await eventually(lambda: store.healthy)
    assert await store.pipelined([setting(name) for name in NAMES]) == [b"OK"] * 60
    monkeypatch.setattr(cluster_store, "_FORGET_SECONDS", 0.0)
    store._old.set()
    await eventually(lambda: gone.node not in store._nodes)
    await new.stop()


async def test_one_task_asks_for_a_map_however_often_it_is_doubted(cluster: ClusterDouble, store: ClusterStore) -> None:
    """All look-ups of a slot that moved would ask at once."""
    for node in cluster.nodes:
        node.reads.clear()
    for _ in range(1000):
        store._old.set()
        await asyncio.sleep(0)
    await eventually(lambda: not store._old.is_set())
    assert b"".join(read for node in cluster.nodes for read in node.reads).count(b"SLOTS") <= 2


async def test_a_map_that_makes_no_sense_is_no_map(cluster: ClusterDouble, store: ClusterStore) -> None:
    for known in ([], [[0, SLOTS, [b"h", 1]]], [b"x"]):
        cluster.known = known
        store._old.set()
        await eventually(lambda: not store._old.is_set())
        assert store.healthy
    assert await store.pipelined([setting(NAME)]) == [b"OK"]


async def test_unreachable_seeds_are_skipped(cluster: ClusterDouble) -> None:
    for node in cluster.nodes:
        await node.stop()
    store = ClusterStore("cache", cluster.listed, 5.0)
    await store.start()
    try:
        assert (store.is_unreachable, store.healthy, list(store.servers)) == (True, False, [])
        with pytest.raises(StoreUnavailable, match="no node"):
            await store.pipelined([setting(NAME)])
        for node in cluster.nodes[1:]:
            await node.start()
        await eventually(lambda: len(store.unreachable_parts) == 1)
        assert store.unreachable_parts == (str(cluster.nodes[0].node),)
    finally:
        await store.stop()


async def test_a_node_that_lies_does_not_make_connections_without_end(
    cluster: ClusterDouble, store: ClusterStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of its redirections names another address."""
    monkeypatch.setattr(cluster_store, "_MOST_NODES", 10)
    liar = cluster.nodes[0]
    ports = iter(range(1, 1000))
    liar.says = lambda words: f"ASK 1 127.0.0.1:{next(ports)}" if words[0] == "GET" else None
    for name in cluster.names_of(liar, 30):
        with pytest.raises(StoreUnavailable):
            await store.send(*getting(name), anything)
    assert len(store._nodes) == 10


async def test_a_store_that_was_stopped_leaves_no_connection(cluster: ClusterDouble) -> None:
    store = ClusterStore("cache", cluster.listed, 5.0)
    await store.start()
    await store.pipelined([setting(name) for name in NAMES])
    before = asyncio.all_tasks()
    await store.stop()
    await eventually(lambda: not any(node.connections for node in cluster.nodes))
    assert not [task for task in asyncio.all_tasks() & before if "cache" in task.get_name()]
