"""Leases from Redis: shared round trips, replies that are checked, and nobody left waiting. See also tests/contract."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from fakeredis import FakeAsyncRedis
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from service.base.terms import Rate
from service.quota.lease_store import Lease, LeaseStore, leased
from service.redis.client import RedisStore
from service.redis.errors import StoreUnavailable
from tests.support.waiting import PATIENCE, eventually

RATE = Rate(10, 1, 5)


class Watched(RedisStore):
    """Counts commands. The next replies are `replies`, or a failure, if that is set."""

    def __init__(self, client: Redis) -> None:
        super().__init__("cache", "redis://fake", client)
        self.commands = 0
        self.replies: list[Any] | None = None
        self.failure: BaseException | None = None

    async def call(self, command: Callable[[Redis], Awaitable[Any]]) -> Any:
        self.commands += 1
        if self.failure is not None:
            raise self.failure
        if self.replies is not None:
            return self.replies
        return await super().call(command)


@pytest.fixture
async def store() -> AsyncIterator[Watched]:
    client = FakeAsyncRedis()
    yield Watched(client)
    await client.aclose()


async def test_calls_of_one_turn_share_a_round_trip(store: Watched) -> None:
    """Each has its own answer, in the order they came."""
    leases = LeaseStore(store)
    answers = await asyncio.gather(
        *(leased(leases, key, RATE, wanted, 1) for key, wanted in [("a", 2), ("b", 5), ("a", 4)])
    )
    assert [(answer.granted, answer.remaining) for answer in answers] == [(2, 3), (5, 0), (3, 0)]
    assert store.commands == 1


async def test_many_calls_are_split(store: Watched) -> None:
    """So that Redis serves others in between."""
    leases = LeaseStore(store)
    answers = await asyncio.gather(*(leased(leases, f"k{number}", RATE, 1 + number % 5, 1) for number in range(150)))
    assert [answer.granted for answer in answers] == [1 + number % 5 for number in range(150)]
    assert store.commands == 3


@pytest.mark.parametrize(
    "reply",
    [
        None,
        b"OK",
        [],
        [1, 4, 0, 9],
        [1, 4, 0, 9, 1, 1],
        [b"1", 4, 0, 9, 1],
        [1.0, 4, 0, 9, 1],
        [True, 4, 0, 9, 1],
        [-1, 4, 0, 9, 1],
        [4, 0, 0, 9, 1],
        [3, 6, 0, 9, 1],
        [3, -1, 0, 9, 1],
        [3, 2, 5, 9, 1],
        [2, 0, 0, 9, 1],
        [2, 1, 5, 9, 1],
        [2, 0, 100_001, 9, 1],
        [2, 0, -5, 9, 1],
        [3, 2, 0, 9, 2],
        [3, 2, 0, 9, None],
    ],
    ids=repr,
)
async def test_a_reply_that_makes_no_sense_counts_as_none(store: Watched, reply: Any) -> None:
    """More than was wanted, a bucket that leaks, waiting for ever, the reply to another call: the store is as good as
    away."""
    store.replies = [reply]
    with pytest.raises(StoreUnavailable, match="was answered with"):
        await leased(LeaseStore(store), "k", RATE, 3, 1)


@pytest.mark.parametrize(
    ("reply", "lease"), [([3, 2, 0, 9, 1], Lease(3, 2, 0)), ([2, 0, 100_000, 9, 1], Lease(2, 0, 100_000))], ids=repr
)
async def test_a_reply_that_makes_sense_is_believed(store: Watched, reply: Any, lease: Lease) -> None:
    """All, or a part and when there will be more."""
    store.replies = [reply]
    assert await leased(LeaseStore(store), "k", RATE, 3, 1) == lease


async def test_an_error_reaches_the_call_that_it_is_for(store: Watched) -> None:
    """The others have their leases."""
    store.replies = [[1, 4, 0, 9, 1], ResponseError("OOM command not allowed"), [1, 3, 0, 9, 3]]
    leases = LeaseStore(store)
    first, second, third = await asyncio.gather(
        *(leased(leases, "k", RATE, 1, 1) for _ in range(3)), return_exceptions=True
    )
    assert (first, third) == (Lease(1, 4, 0), Lease(1, 3, 0))
    assert isinstance(second, StoreUnavailable)
    assert "OOM" in str(second)


async def test_a_failure_reaches_all_who_share_it_and_nobody_else(store: Watched) -> None:
    """The next turn tries again."""
    leases = LeaseStore(store)
    store.failure = StoreUnavailable("cache is away")
    results = await asyncio.gather(*(leased(leases, "k", RATE, 1, 1) for _ in range(3)), return_exceptions=True)
    assert [(type(result), str(result)) for result in results] == [(StoreUnavailable, "cache is away")] * 3
    store.failure = None
    assert (await leased(leases, "k", RATE, 1, 1)).granted == 1


async def test_a_defect_leaves_nobody_waiting(store: Watched) -> None:
    """They are told that the store cannot be asked; the loop is told what happened."""
    reported: list[BaseException] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))
    store.failure = RuntimeError("a defect")
    with pytest.raises(StoreUnavailable, match="a defect"):
        await asyncio.wait_for(leased(LeaseStore(store), "k", RATE, 1, 1), PATIENCE)
    # The fake client cannot open a connection, which the loop may be told as well, before or after.
    await eventually(lambda: gc.collect() >= 0 and "a defect" in map(str, reported))


async def test_a_caller_that_goes_away_harms_nobody(store: Watched) -> None:
    """The command is not its own."""
    leases = LeaseStore(store)
    tasks = [asyncio.create_task(leased(leases, "k", RATE, 1, 1)) for _ in range(3)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    assert [answer.granted for answer in await asyncio.gather(*tasks[1:])] == [1, 1]
    assert tasks[0].cancelled()
