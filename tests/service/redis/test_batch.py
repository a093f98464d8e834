"""GETs of one turn travel as one MGET: each caller gets its own value, and nobody is left waiting."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from fakeredis import FakeAsyncRedis
from redis.asyncio import Redis

from service.redis.batch import BatchedGet
from service.redis.errors import StoreUnavailable
from tests.support.redis_double import DoubledStore
from tests.support.waiting import PATIENCE, eventually


class Watched(DoubledStore):
    """Counts commands; the next one fails with `failure` if it is set."""

    def __init__(self, client: FakeAsyncRedis) -> None:
        super().__init__(client)
        self.commands = 0
        self.failure: BaseException | None = None

    async def call(self, command: Callable[[Redis], Awaitable[Any]]) -> Any:
        self.commands += 1
        if self.failure is not None:
            raise self.failure
        return await super().call(command)


@pytest.fixture
async def store() -> AsyncIterator[Watched]:
    client = FakeAsyncRedis()
    await client.mset({f"k{number}": str(number) for number in range(200)})
    yield Watched(client)
    await client.aclose()


async def test_callers_of_one_turn_share_a_command(store: Watched) -> None:
    """Each gets the value of its own name, also of one asked for twice and of one that is not there."""
    batched = BatchedGet(store)
    names = ["k3", "k1", "nothing", "k3", "k2"]
    assert await asyncio.gather(*map(batched.get, names)) == [b"3", b"1", None, b"3", b"2"]
    assert store.commands == 1


async def test_callers_of_another_turn_have_their_own(store: Watched) -> None:
    """Nobody waits for more to come."""
    batched = BatchedGet(store)
    assert (await batched.get("k1"), await batched.get("k2")) == (b"1", b"2")
    assert store.commands == 2


async def test_many_callers_are_split(store: Watched) -> None:
    """So that no reply grows without bound; nothing is mixed up at the seams."""
    batched = BatchedGet(store)
    replies = await asyncio.gather(*(batched.get(f"k{number}") for number in range(200)))
    assert replies == [str(number).encode() for number in range(200)]
    assert store.commands == 4


async def test_a_caller_that_goes_away_harms_nobody(store: Watched) -> None:
    """The command is not its own."""
    batched = BatchedGet(store)
    tasks = [asyncio.create_task(batched.get(f"k{number}")) for number in range(5)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.sleep(0)
    tasks[3].cancel()
    assert list(await asyncio.gather(tasks[1], tasks[2], tasks[4])) == [b"1", b"2", b"4"]
    assert tasks[0].cancelled()
    assert tasks[3].cancelled()


async def test_a_failure_reaches_all_who_share_it_and_nobody_else(store: Watched) -> None:
    """The next turn tries again."""
    batched = BatchedGet(store)
    store.failure = StoreUnavailable("cache is away")
    results = await asyncio.gather(*(batched.get("k1") for _ in range(3)), return_exceptions=True)
    assert [str(result) for result in results] == ["cache is away"] * 3
    assert all(isinstance(result, StoreUnavailable) for result in results)
    store.failure = None
    assert await batched.get("k1") == b"1"


async def test_a_failure_that_no_part_foresaw_leaves_nobody_waiting(store: Watched) -> None:
    """They are told that the store cannot be asked; the loop is told what happened."""
    reported: list[BaseException] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))
    store.failure = RuntimeError("a defect")
    with pytest.raises(StoreUnavailable, match="a defect"):
        await asyncio.wait_for(BatchedGet(store).get("k1"), PATIENCE)
    await eventually(lambda: gc.collect() >= 0 and [str(error) for error in reported] == ["a defect"])


async def test_a_value_of_another_type_is_none(store: Watched) -> None:
    """As one that is not there."""
    client = FakeAsyncRedis(server=None)
    await client.lpush("list", "x")
    assert await BatchedGet(Watched(client)).get("list") is None
    await client.aclose()
