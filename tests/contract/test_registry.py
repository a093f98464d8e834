"""The instances on a key store, over every server: who lives, who was told to purge, what time it is."""

import time
from collections.abc import AsyncIterator
from typing import cast

import msgspec
import pytest

from service.base.tasks import end_task
from service.instance import peers as peers_module
from service.instance import registry
from service.instance.peers import Peers
from service.instance.registry import INSTANCES, BeatReply, Peer, beat, leave, peers_in
from service.redis.client import RedisStore
from service.redis.errors import StoreUnavailable
from tests.contract.conftest import Backend
from tests.support.waiting import eventually


def peer(instance: str, workers: int = 2) -> Peer:
    return Peer(instance, "web-1", f"http://{instance}:8001", workers)


async def field(redis: RedisStore, name: str, value: str | None = None) -> bytes | None:
    """The field of the hash; it is set to `value` before, if that is given."""
    if value is not None:
        await redis.call(lambda client: client.hset(INSTANCES, name, value))
    return cast("bytes | None", await redis.call(lambda client: client.hget(INSTANCES, name)))


async def test_each_hears_of_all_until_they_leave(redis: RedisStore) -> None:
    assert (await beat(redis, peer("a"))).peers == (peer("a"),)
    assert set((await beat(redis, peer("b"))).peers) == {peer("a"), peer("b")}
    assert await peers_in(redis) == [peer("a"), peer("b")]
    await leave(redis, "a")
    assert await peers_in(redis) == [peer("b")]


async def test_the_time_is_that_of_the_store(redis: RedisStore) -> None:
    assert (await beat(redis, peer("a"))).at == pytest.approx(time.time(), abs=30)


async def test_who_is_silent_counts_as_dead(redis: RedisStore) -> None:
    """Also if its time is in the future, as after a failover to a server whose clock is behind."""
    await beat(redis, peer("a"))
    record = msgspec.json.encode(peer("b")).decode()
    for at in (int(time.time()) - 60, int(time.time()) + 60):
        await field(redis, "b", f"{at}:{record}")
        assert await peers_in(redis) == [peer("a")]
        assert (await beat(redis, peer("a"))).peers == (peer("a"),)
        assert await field(redis, "b") is None


async def test_a_record_that_is_the_same_is_not_written_each_second(redis: RedisStore) -> None:
    await beat(redis, peer("a"))
    [at, record] = ((await field(redis, "a")) or b"").split(b":", 1)
    older = f"{int(at) - 2}:{record.decode()}"
    await field(redis, "a", older)
    await beat(redis, peer("a"))
    assert await field(redis, "a") == older.encode()
    await beat(redis, peer("a", 3))
    assert await field(redis, "a") != older.encode()


async def test_records_of_other_versions_are_left_out(redis: RedisStore) -> None:
    await field(redis, "b", f'{int(time.time())}:{{"what": 1}}')
    assert (await beat(redis, peer("a"))).peers == (peer("a"),)
    assert await peers_in(redis) == [peer("a")]


async def test_damage_is_reported(redis: RedisStore) -> None:
    await redis.call(lambda client: client.set(INSTANCES, "x"))
    with pytest.raises(StoreUnavailable):
        await beat(redis, peer("a"))


class Supervised:
    """One instance: how often its near caches were purged, and how often it was told of something new."""

    def __init__(self, backend: Backend, name: str, workers: int = 2) -> None:
        self.purges = self.news = 0
        self.store = backend.store(timeout=5)
        self.peers = Peers(self.store, peer(name, workers), self._purge, self._changed)

    async def _purge(self) -> None:
        self.purges += 1

    def _changed(self) -> None:
        self.news += 1


@pytest.fixture
async def pair(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[Supervised]]:
    monkeypatch.setattr(peers_module, "BEAT_SECONDS", 0.02)
    both = [Supervised(backend, "a"), Supervised(backend, "b", 4)]
    for one in both:
        await one.peers.start()
    yield both
    for one in both:
        await one.peers.stop()


async def test_a_purge_reaches_all_and_is_carried_out_once(pair: list[Supervised]) -> None:
    """Not by who ordered it, which has done so."""
    first, second = pair
    assert await first.peers.order_purge() == (("b",), ())
    for _ in range(2):
        await eventually(lambda: len(first.peers.others) == 1)
    assert (first.purges, second.purges) == (0, 1)


async def test_a_beat_that_was_under_way_at_an_order_is_not_obeyed(
    pair: list[Supervised], monkeypatch: pytest.MonkeyPatch
) -> None:
    peers = pair[0].peers
    await end_task(peers._task)

    async def while_ordering(store: RedisStore, me: Peer) -> BeatReply:
        monkeypatch.setattr(registry, "beat", beat)
        heard = await beat(store, me)
        await peers.order_purge()
        return heard

    monkeypatch.setattr(registry, "beat", while_ordering)
    for _ in range(2):
        await peers._beat()
    assert pair[0].purges == 0


async def test_who_does_not_obey_is_named(pair: list[Supervised], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers_module, "_REACH_SECONDS", 0.1)
    first, second = pair
    await eventually(lambda: len(first.peers.others) == 1)
    await end_task(second.peers._task)
    assert await first.peers.order_purge() == ((), ("b",))


async def test_a_purge_from_before_its_start_is_none_for_an_instance(pair: list[Supervised], backend: Backend) -> None:
    await pair[0].peers.order_purge()
    late = Supervised(backend, "c")
    await late.peers.start()
    heard = await beat(late.store, late.peers._me)
    assert (late.purges, late.peers._purged) == (0, heard.purged)
    await late.peers.stop()


async def test_workers_are_counted_and_the_last_number_stays(pair: list[Supervised]) -> None:
    """While the store does not answer, and when it has lost the records; not when an instance has ended."""
    first, second = pair

    def workers() -> int:
        return sum(one.workers for one in first.peers.others)

    await eventually(lambda: workers() == 4)
    heard = BeatReply(first.peers.clock(), "", ())
    for _ in range(4):
        first.peers._take(heard)
    assert workers() == 4
    await second.peers.stop()
    await eventually(lambda: workers() == 0)
    assert first.news >= 2
    await second.peers.start()


async def test_the_clock_is_the_store_s(pair: list[Supervised]) -> None:
    assert pair[0].peers.clock.ahead == pytest.approx(0, abs=30)


def test_records_are_renewed_well_before_they_end() -> None:
    assert registry._RENEW_SECONDS + 2 * peers_module.BEAT_SECONDS < registry.DEAD_AFTER_SECONDS
