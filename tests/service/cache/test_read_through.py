"""The read-through: near, shared, one fill for all who wait, store; and always an answer."""

import asyncio
import socket

import pytest
from fakeredis import FakeAsyncRedis

from service.base import tracing
from service.base.tracing import Trace
from service.cache.entry import CacheEntry
from service.cache.key import CacheKey, cache_key
from service.cache.near import NearCache
from service.cache.read_through import ReadThrough
from service.cache.shared import SharedCache, SharedLookup
from service.redis.client import RedisStore
from service.redis.connections import open_client
from tests.support.redis_double import DoubledStore
from tests.support.waiting import eventually

KEY = cache_key("r1", "forecast", "zip:36436")
BODY = b'{"total_results":1}'


class Warehouse:
    """Counts fills; each takes a few turns of the loop, as a real one takes time."""

    def __init__(self, body: bytes = BODY) -> None:
        self.body = body
        self.fills = 0
        self.error: Exception | None = None

    async def __call__(self) -> bytes:
        self.fills += 1
        await asyncio.sleep(0.01)
        if self.error is not None:
            raise self.error
        return self.body


def near_of(release: str = "r1", room: int = 1 << 24) -> NearCache:
    near = NearCache(room, 300)
    near.switch(release)
    return near


class Scene:
    """`cache` is a worker's whose near cache is `near`."""

    def __init__(self, client: FakeAsyncRedis) -> None:
        self.client = client
        self.lookups: list[tuple[str, str]] = []
        self.near = near_of()
        self.cache = self.another_worker(self.near)

    def another_worker(self, near: NearCache | None = None) -> ReadThrough:
        near = near if near is not None else near_of()
        shared = SharedCache(DoubledStore(self.client), 60)
        return ReadThrough(near, shared, lambda tier, outcome, _: self.lookups.append((tier, outcome)))


class LateShared(SharedCache):
    """Has the entry, and says so when it is told to."""

    def __init__(self, found: SharedLookup) -> None:
        super().__init__(DoubledStore(FakeAsyncRedis()), 60)
        self.found = found
        self.asked = asyncio.Event()
        self.reply = asyncio.Event()

    async def get(self, key: CacheKey) -> SharedLookup:
        self.asked.set()
        await self.reply.wait()
        return self.found


@pytest.fixture
def scene() -> Scene:
    return Scene(FakeAsyncRedis())


async def _stored(scene: Scene, *, instead_of: bytes | None = None) -> None:
    async def stored() -> bool:
        return await scene.client.get(KEY.name) != instead_of

    await eventually(stored)


async def test_a_fill_is_a_step_of_the_request_that_began_it(scene: Scene) -> None:
    traces = [Trace(None, 0.0), Trace(None, 0.0)]

    async def get(trace: Trace | None) -> None:
        tracing.enter(trace)
        await scene.cache.fetch(KEY, Warehouse())

    await asyncio.gather(*(get(trace) for trace in (*traces, None)))
    noted = [[(one.name, one.attributes.get("forecast.outcome")) for one in trace.steps] for trace in traces]
    asked = ("shared", "miss")
    assert noted == [[asked, ("single flight", "led"), ("warehouse", None)], [asked, ("single flight", "joined")]]


async def test_an_error_reaches_everyone_and_is_not_kept(scene: Scene) -> None:
    warehouse = Warehouse()
    warehouse.error = ValueError("broken")
    results = await asyncio.gather(*(scene.cache.fetch(KEY, warehouse) for _ in range(5)), return_exceptions=True)
    assert [str(result) for result in results] == ["broken"] * 5
    assert warehouse.fills == 1
    assert await scene.client.get(KEY.name) is None
    assert scene.near.entries == 0
    warehouse.error = None
    assert (await scene.cache.fetch(KEY, warehouse)).entry.body == BODY
    assert scene.lookups[-1] == ("warehouse", "hit")


async def test_a_damaged_entry_is_filled_again(scene: Scene) -> None:
    await scene.client.set(KEY.name, b"nonsense")
    fetched = await scene.cache.fetch(KEY, Warehouse())
    assert (fetched.entry.body, fetched.tier, fetched.bypassed) == (BODY, "warehouse", False)
    await _stored(scene, instead_of=b"nonsense")
    assert (await scene.another_worker().fetch(KEY, Warehouse(b"never"))).entry.body == BODY


async def test_without_redis_the_warehouse_still_answers() -> None:
    with socket.socket() as bound:  # bound and not listening: nobody is there, and no other comes
        bound.bind(("127.0.0.1", 0))
        url = f"redis://127.0.0.1:{bound.getsockname()[1]}/0"
        store = RedisStore("cache", url, open_client(url, timeout=0.05))
        cache, warehouse = ReadThrough(near_of(room=0), SharedCache(store, 60)), Warehouse()
        fetched = await asyncio.gather(*(cache.fetch(KEY, warehouse) for _ in range(20)))
        await store.stop()
    assert {(one.entry.body, one.tier, one.bypassed) for one in fetched} == {(BODY, "warehouse", True)}
    assert warehouse.fills == 1


async def test_a_large_answer_is_packed_without_holding_the_loop(scene: Scene) -> None:
    fetched = await scene.cache.fetch(KEY, Warehouse(BODY * 20_000))
    await _stored(scene)
    again = await scene.another_worker().fetch(KEY, Warehouse(b"never"))
    assert again.entry == fetched.entry
    assert 0 < len(again.entry.gzipped) < len(again.entry.body)


async def test_what_was_found_once_is_near(scene: Scene) -> None:
    first = await scene.cache.fetch(KEY, Warehouse())
    await _stored(scene)
    near = near_of()
    other = scene.another_worker(near)
    second = await other.fetch(KEY, Warehouse(b"never"))
    assert (first.tier, second.tier, second.entry) == ("warehouse", "shared", first.entry)
    assert scene.lookups == [("shared", "miss"), ("warehouse", "hit"), ("shared", "hit")]
    for one in (scene.near, near):
        found = one.get(KEY.digest)
        assert found is not None
        assert (found.entry, found.tier, found.bypassed) == (first.entry, "near", False)
        assert (one.hits, one.misses, one.entries) == (1, 1, 1)


async def test_without_a_near_cache_every_look_up_goes_to_the_shared_one(scene: Scene) -> None:
    cache = scene.another_worker(near_of(room=0))
    await cache.fetch(KEY, Warehouse())
    await _stored(scene)
    assert [(await cache.fetch(KEY, Warehouse(b"never"))).tier for _ in range(3)] == ["shared"] * 3


@pytest.mark.parametrize("outcome", ["hit", "miss"])
@pytest.mark.parametrize("meanwhile", ["switch", "purge"])
async def test_a_late_reply_is_served_and_not_kept(outcome: str, meanwhile: str) -> None:
    near, warehouse = near_of(), Warehouse()
    entry = CacheEntry.of(BODY)
    shared = LateShared(SharedLookup("hit", entry) if outcome == "hit" else SharedLookup("miss"))
    asking = asyncio.create_task(ReadThrough(near, shared).fetch(KEY, warehouse))
    await shared.asked.wait()
    if meanwhile == "switch":
        near.switch("r2")
    else:
        list(near.purge())
    shared.reply.set()
    fetched = await asking
    assert (fetched.entry, fetched.tier) == (entry, "shared" if outcome == "hit" else "warehouse")
    assert near.entries == (1 if (outcome, meanwhile) == ("miss", "purge") else 0)


async def test_a_fill_under_way_when_everything_is_purged_is_not_kept(scene: Scene) -> None:
    """It may have read what the purge is about."""
    warehouse = Warehouse()
    asking = asyncio.create_task(scene.cache.fetch(KEY, warehouse))
    await eventually(lambda: warehouse.fills == 1)
    list(scene.near.purge())
    assert (await asking).entry.body == BODY
    assert scene.near.entries == 0
