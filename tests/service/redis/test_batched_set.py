"""Values that are stored together: each is told whether it was, and nobody else waits for them."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from fakeredis import FakeAsyncRedis
from redis.asyncio import Redis

from service.redis import batched_set
from service.redis.batched_set import BatchedSet
from service.redis.client import RedisStore
from service.redis.errors import StoreUnavailable
from tests.support.waiting import PATIENCE, eventually


class Watched(RedisStore):
    """Notes how many replies each command had; one waits while `may_go` is not set, and fails with `failure`."""

    def __init__(self, client: Redis) -> None:
        super().__init__("cache", "redis://fake", client)
        self.client = client
        self.begun = 0
        self.replies: list[int] = []
        self.failure: BaseException | None = None
        self.may_go = asyncio.Event()
        self.may_go.set()

    async def call(self, command: Callable[[Redis], Awaitable[Any]]) -> Any:
        self.begun += 1
        await self.may_go.wait()
        if self.failure is not None:
            raise self.failure
        replies = await super().call(command)
        self.replies.append(len(replies))
        return replies


@pytest.fixture
async def store() -> AsyncIterator[Watched]:
    client = FakeAsyncRedis()
    yield Watched(client)
    await client.aclose()


async def test_values_of_one_turn_share_a_command(store: Watched) -> None:
    """Each is stored under its own name, with a time to live."""
    batched = BatchedSet(store, 60)
    assert await asyncio.gather(*(batched.set(f"k{number}", b"%d" % number) for number in range(5))) == [True] * 5
    assert store.replies == [5]
    assert await store.client.mget([f"k{number}" for number in range(5)]) == [b"%d" % number for number in range(5)]
    assert 0 < await store.client.ttl("k4") <= 60


async def test_values_of_a_few_turns_share_a_command(store: Watched) -> None:
    """It waits for them, but not for long."""
    batched = BatchedSet(store, 60)
    stored = []
    for number in range(5):
        stored.append(batched.set(f"k{number}", b"x"))
        await asyncio.sleep(0)
    assert await asyncio.gather(*stored) == [True] * 5
    assert store.replies == [5]


async def test_what_comes_while_a_command_is_under_way_shares_the_next(store: Watched) -> None:
    store.may_go.clear()
    batched = BatchedSet(store, 60)
    stored = [batched.set("k0", b"x")]
    await eventually(lambda: store.begun == 1)
    stored += [batched.set(f"k{number}", b"x") for number in range(1, 5)]
    store.may_go.set()
    assert await asyncio.gather(*stored) == [True] * 5
    assert store.replies == [1, 4]


async def test_many_values_are_split(store: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """By number and by size, so that Redis has its turn for others."""
    monkeypatch.setattr(batched_set, "_MOST_BYTES", 1000)
    batched = BatchedSet(store, 60)
    await asyncio.gather(*(batched.set(f"k{number}", b"x") for number in range(100)))
    await asyncio.gather(
        *(batched.set(f"k{number}", b"x" * size) for number, size in enumerate((600, 600, 1, 5000, 1)))
    )
    assert store.replies == [64, 36, 2, 2, 1]


async def test_a_failure_is_told_to_all_who_share_it_and_to_nobody_else(store: Watched) -> None:
    """As "not stored"; the next command tries again."""
    batched = BatchedSet(store, 60)
    store.failure = StoreUnavailable("cache is away")
    assert await asyncio.gather(*(batched.set(name, b"x") for name in "ab")) == [False, False]
    store.failure = None
    assert await batched.set("a", b"x")


async def test_a_failure_that_no_part_foresaw_leaves_nobody_waiting(store: Watched) -> None:
    """Nor what waits behind it; the loop is told what happened."""
    reported: list[BaseException] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))
    store.failure = RuntimeError("a defect")
    batched = BatchedSet(store, 60)
    stored = [batched.set(f"k{number}", b"x") for number in range(100)]
    assert await asyncio.wait_for(asyncio.gather(*stored), PATIENCE) == [False] * 100
    await eventually(lambda: gc.collect() >= 0 and [str(error) for error in reported] == ["a defect"])
    store.failure = None
    assert await batched.set("a", b"x")


async def test_what_a_slow_store_cannot_take_is_not_stored(store: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rather than kept until it can."""
    monkeypatch.setattr(batched_set, "_MOST_WAITING_BYTES", 1000)
    store.may_go.clear()
    batched = BatchedSet(store, 60)
    stored = [batched.set(f"k{number}", b"x" * 400) for number in range(4)]
    assert [one.done() for one in stored] == [False, False, True, True]
    store.may_go.set()
    assert await asyncio.gather(*stored) == [True, True, False, False]
    assert await batched.set("k4", b"x" * 900)
