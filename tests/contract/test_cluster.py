"""Whatever is beside the look-ups in the cache's Redis, on a cluster: a real one, and one of doubles."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import NoPermissionError

from service.base.ipc import Endpoints
from service.base.terms import parse_rate
from service.cache.contents import read_entry, survey
from service.cache.entry import CacheEntry
from service.cache.key import EVERY_NAME, cache_key, is_trial
from service.cache.removing import purge_shared, remove_entries
from service.cache.shared import SharedCache
from service.cache.warm import Answer, Plan, WarmError, warm
from service.embedded.probe import check_answers_redis
from service.instance import store_checks
from service.instance.store_checks import StoreChecks
from service.operators.overview import StoreNode
from service.quota.last_errors import LastErrors
from service.quota.lease_store import LeaseStore
from service.redis.cluster.slots import slot_of
from service.redis.cluster.store import ClusterStore
from service.redis.errors import StoreUnavailable
from service.redis.opening import CacheStore, cache_place, open_cache, opened
from tests.support.cluster import Cluster
from tests.support.cluster_double import ClusterDouble
from tests.support.documented import rights
from tests.support.last_errors import failed, keep, kept
from tests.support.waiting import eventually

PASSWORD = "PASSWORD"
ANSWERS: list[Answer] = [("forecast", f"zip:{at:05}", b'{"zip":%d}' % at) for at in range(450)]
KEYS = [cache_key("r2", area, query) for area, query, _ in ANSWERS]
USER_NAMES = [f"{{{at}}}" for at in range(12)]  # of all nodes


def silent(_: int) -> None:
    """Progress that is not observed."""


@pytest.mark.parametrize("name", ["", "foo", "{foo}bar", "foo{}{bar}", "foo{{bar}}zap", "foo{bar", "c:\u00fc"])
def test_slots_are_those_of_the_server(cluster: Cluster, name: str) -> None:
    assert cluster.nodes[0].command("CLUSTER", "KEYSLOT", name) == slot_of(name)


async def test_rates_are_leased_of_buckets_on_all_nodes(clustered: CacheStore) -> None:
    """Twice: no node knows the script at first. Each key has its own."""
    leases = LeaseStore(clustered)
    for _ in range(2):
        granted = await asyncio.gather(*(leases.lease(name, parse_rate("100/s"), 1, 1) for name in USER_NAMES))
        assert [lease.granted for lease in granted] == [1] * len(USER_NAMES)


async def test_last_errors_are_kept_on_all_nodes(clustered: CacheStore) -> None:
    errors = LastErrors(clustered)
    for number in (1, 2):
        await keep(errors, *(failed(number, name) for name in USER_NAMES))
    assert [await kept(errors, name) for name in USER_NAMES] == [["r2", "r1"]] * len(USER_NAMES)
    assert errors.dropped == 0


async def test_trying_whether_entries_are_taken_asks_each_node(clustered: CacheStore) -> None:
    assert isinstance(clustered, ClusterStore)
    cache = SharedCache(clustered, 60)
    await cache.try_to_store()
    assert cache.refusal is None
    for server in clustered.servers:
        found = [name async for names in server.scan(EVERY_NAME, 500) for name in names]
        assert [is_trial(name) for name in found] == [True]


@pytest.fixture
def emptied(cluster: Cluster) -> Cluster:
    cluster.empty()
    return cluster


async def test_commands_work_on_all_nodes(emptied: Cluster) -> None:
    url = emptied.url
    for release in ("r1", "r2"):
        assert await warm(url, Plan(release=release, ttl=60, seconds=60), ANSWERS, silent) == 450
    assert all(node.command("DBSIZE") > 200 for node in emptied.primaries)
    async with opened("shared cache", url, 30) as store:
        found = await survey(store, 60, silent)
        assert [(one.release, one.entries) for one in found.releases] == [("r2", 450), ("r1", 450)]
        assert all(one.bytes for one in found.releases)
        assert (found.complete, found.server.names) == (True, 900)
        held = await read_entry(store, KEYS[7])
        assert (held.entry, held.counted) == (CacheEntry.of(b'{"zip":7}'), False)
        assert held.seconds is not None
    assert await remove_entries(url, ["r1"], 60) == 450
    assert await purge_shared(url) == 450
    assert await purge_shared(url) == 0


async def test_commands_find_what_is_moving(emptied: Cluster) -> None:
    """Half of a slot is here and half there; and a map is old as soon as it is read."""
    tagged = [f"c:2:r1:{{t}}{number}" for number in range(4)]
    (slot,) = {slot_of(name) for name in tagged}
    here = emptied.owner(slot)
    there = next(one for one in emptied.primaries if one is not here)
    async with opened("shared cache", emptied.url, 30) as store:
        for name in tagged:
            here.command("SET", name, "x")
        there.command("CLUSTER", "SETSLOT", slot, "IMPORTING", here.id)
        here.command("CLUSTER", "SETSLOT", slot, "MIGRATING", there.id)
        here.command("MIGRATE", there.node.host, there.node.port, "", 0, 5000, "KEYS", *tagged[:2])
        assert await store.unlink([name.encode() for name in tagged[1:3]]) == 2
        emptied.move([slot], here, there)
        assert await store.unlink([name.encode() for name in tagged]) == 2
    emptied.move([slot], there, here)


async def test_operators_see_each_node(emptied: Cluster, short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory and time of each, the sum of all, and which one will stop taking answers."""
    monkeypatch.setattr(store_checks, "_LOOK_SECONDS", 0.01)
    keys = f"unix://{short / 'nobody'}"
    checks = StoreChecks(Endpoints(keys, emptied.url, b"pepper of the tests"), short)
    await checks.start()
    full = emptied.primaries[1]
    try:
        await eventually(lambda: all(node.up and node.memory for node in checks.stores([])[1].nodes or [_nobody()]))
        cache = checks.stores([])[1]
        assert [node.node for node in cache.nodes] == sorted(str(one.node) for one in emptied.primaries)
        assert cache.memory == sum(node.memory or 0 for node in cache.nodes)
        full.command("CONFIG", "SET", "maxmemory", "100mb")
        await eventually(lambda: len(checks.problems) == 1)
        assert str(full.node) in checks.problems[0]
    finally:
        full.command("CONFIG", "SET", "maxmemory", "0")
        await checks.stop()


async def test_commands_do_what_they_can_if_a_node_is_unreachable() -> None:
    """Those of other nodes are warmed, forgotten and purged; the node that is unreachable is named."""
    double = await ClusterDouble().start()
    gone = double.nodes[1]
    theirs = [key for key in KEYS if double.owner(key.name) is gone]
    plan = Plan(release="r2", ttl=60, seconds=60)
    try:
        url = double.url
        await gone.stop()
        with pytest.raises(WarmError, match=rf"stored {450 - len(theirs)} of 450 answers; .*{gone.node}"):
            await warm(url, plan, ANSWERS, silent)
        assert sum(node.data.dbsize() for node in double.nodes) == 450 - len(theirs)
        with pytest.raises(StoreUnavailable, match=rf"removed {450 - len(theirs)} answers, then: .*{gone.node.port}"):
            await remove_entries(url, ["r2"], 60)
        with pytest.raises(WarmError):
            await warm(url, plan, ANSWERS, silent)
        with pytest.raises(StoreUnavailable, match=str(gone.node.port)):
            await purge_shared(url)
        assert not any(node.data.dbsize() for node in double.nodes)
    finally:
        await double.stop()
    with pytest.raises(WarmError, match="no node reports the slots"):
        await warm(url, plan, ANSWERS, silent)
    with pytest.raises(StoreUnavailable, match="no node reports the slots"):
        await remove_entries(url, ["r2"], 60)
    with pytest.raises(StoreUnavailable, match="no node reports the slots"):
        await purge_shared(url)


def _nobody() -> StoreNode:
    return StoreNode(node="", up=False)


@pytest.fixture
def guarded(emptied: Cluster) -> Iterator[Cluster]:
    """The documented users on each node."""
    lines = [*rights("cache"), *rights("cache-cluster")]
    for node in emptied.nodes:
        for line in lines:
            node.command(*line)
    yield emptied
    for node in emptied.nodes:
        node.command("ACL", "DELUSER", "forecast-cache")


async def test_the_documented_rights_are_enough(guarded: Cluster) -> None:
    """For look-ups, also of slots that moved or are moving, filling, rates, errors and all commands."""
    url = guarded.url_of(f"forecast-cache:{PASSWORD}@")
    assert await check_answers_redis(url) is None
    key, entry = KEYS[0], CacheEntry.of(b"{}")
    slot = slot_of(key.name)
    here = guarded.owner(slot)
    there = next(one for one in guarded.primaries if one is not here)
    store = open_cache("a store", cache_place(url), timeout=30)
    await store.start()
    cache = SharedCache(store, 60)
    assert await cache.put(key, entry)
    there.command("CLUSTER", "SETSLOT", slot, "IMPORTING", here.id)
    here.command("CLUSTER", "SETSLOT", slot, "MIGRATING", there.id)
    here.command("MIGRATE", there.node.host, there.node.port, "", 0, 5000, "KEYS", key.name)
    assert (await cache.get(key)).entry == entry
    guarded.move([slot], here, there)
    assert (await cache.get(key)).entry == entry
    assert (await read_entry(store, key)).entry == entry
    assert (await LeaseStore(store).lease("a", parse_rate("100/s"), 1, 1)).granted == 1
    errors = LastErrors(store)
    await keep(errors, failed(1))
    assert await kept(errors) == ["r1"]
    assert await warm(url, Plan(release="r3", ttl=60, seconds=60), ANSWERS, silent) == 450
    assert {one.release for one in (await survey(store, 60, silent)).releases} == {"r2", "r3"}
    assert await remove_entries(url, ["r3"], 60) == 450
    assert await purge_shared(url) == 1
    guarded.move([slot], there, here)
    await store.stop()
    with Redis.from_url(here.url.replace("redis://", f"redis://forecast-cache:{PASSWORD}@")) as client:
        for words in ("CLUSTER RESET", "CLUSTER SETSLOT 1 STABLE", "FLUSHALL", f"DEL {key.name}", "CONFIG GET *"):
            with pytest.raises(NoPermissionError):
                client.execute_command(*words.split())
