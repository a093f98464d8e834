"""Usage in a store that lies: no key gets another one's total. The test is the server."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from service.quota.batch import NO_BATCH, UsageBatch
from service.quota.confirmed_batches import ConfirmedBatches
from service.quota.usage_store import Gap, Refused, Reply, Totals, UsageStore
from service.redis.errors import StoreUnavailable
from tests.support.redis_double import Wire, WiredStore
from tests.support.waiting import settled

# 2026-11-20
DAY = 20_777
ONE = UsageBatch(1, ((DAY, "forecast", "answered", 1),))

Adding = list["asyncio.Task[list[Reply]]"]


@pytest.fixture
async def server() -> AsyncIterator[WiredStore]:
    store = WiredStore(name="store")
    yield store
    await store.stop()


async def adding(
    server: WiredStore, *key_ids: str, batch: UsageBatch = ONE, kept: ConfirmedBatches | None = None
) -> tuple[Wire, Adding, list[int]]:
    """A call for each key: the connection, the calls, and their numbers."""
    usage = UsageStore(server)
    tasks = [asyncio.create_task(usage.add("w", [(key_id, batch)], DAY, kept)) for key_id in key_ids]
    await settled()
    [wire] = server.wires
    return wire, tasks, [int(words[-2]) for words in wire.taken()]


def reply(call: int, total: int = 1, outcome: int = 1) -> bytes:
    return b"*7\r\n:%d\r\n:%d\r\n:%d\r\n:1\r\n$2\r\nid\r\n:0\r\n:%d\r\n" % (outcome, total, total, call)


async def test_a_reply_is_that_to_its_call(server: WiredStore) -> None:
    wire, (a, b), (first, second) = await adding(server, "a", "b")
    replies = reply(first, 5) + reply(second, 7, outcome=2)
    wire.arrive(replies, range(len(replies)))
    assert (await a, await b) == ([Totals(DAY, 5, 5)], [Gap(1, Totals(DAY, 7, 7))])
    wire, (c,), (third,) = await adding(server, "c", batch=NO_BATCH)
    wire.arrive(reply(third, 3, outcome=0))
    assert await c == [Totals(DAY, 3, 3)]


async def test_after_a_reply_that_is_not_to_its_call_nothing_is_believed(server: WiredStore) -> None:
    """Else a batch would be taken for stored that is not, and a quota be judged by another key's total."""
    wire, tasks, (first, _, third) = await adding(server, "a", "b", "c")
    wire.arrive(reply(first) + reply(third))
    assert await tasks[0] == [Totals(DAY, 1, 1)]
    for task in tasks[1:]:
        with pytest.raises(StoreUnavailable, match="unexpected reply"):
            await task
    assert (wire.ended, server.line.is_open, server.is_unreachable) == (1, False, False)


async def test_a_refusal_is_of_its_call_alone(server: WiredStore) -> None:
    wire, tasks, (_, second, third) = await adding(server, "a", "b", "c")
    damaged = reply(second).replace(b"*7\r\n:1", b"*7\r\n:9")
    wire.arrive(b"-DAMAGED s:{a}\r\n" + damaged + reply(third))
    [refused], [unexpected], [totals] = await asyncio.gather(*tasks)
    assert (refused, totals) == (Refused("DAMAGED s:{a}"), Totals(DAY, 1, 1))
    assert isinstance(unexpected, Refused)
    assert server.line.is_open


@pytest.mark.parametrize("ends", ["all", "lost", "cancelled"])
async def test_batches_that_are_added_together_have_each_its_own_reply(server: WiredStore, ends: str) -> None:
    usage = UsageStore(server)
    task = asyncio.create_task(usage.add("w", [("a", ONE), ("b", ONE)], DAY))
    await settled()
    [wire] = server.wires
    first, second = (int(words[-2]) for words in wire.taken())
    wire.arrive(reply(first, 5))
    if ends == "cancelled":
        task.cancel()
        await asyncio.wait([task])
    if ends == "lost":
        wire.connection.connection_lost(None)
        with pytest.raises(StoreUnavailable):
            await task
        return
    wire.arrive(reply(second, 7))
    await asyncio.wait([task])
    assert task.cancelled() == (ends == "cancelled")
    assert task.cancelled() or task.result() == [Totals(DAY, 5, 5), Totals(DAY, 7, 7)]
    assert server.line.is_open


async def test_a_store_whose_id_is_damaged_is_asked_all_the_same(server: WiredStore) -> None:
    kept = ConfirmedBatches()
    wire, (task,), (call,) = await adding(server, "a", kept=kept)
    wire.arrive(reply(call).replace(b"id", b"\xff\xfe"))
    assert await task == [Totals(DAY, 1, 1)]
    wire, (task,), (call,) = await adding(server, "a", kept=kept)
    wire.arrive(reply(call, 2))
    assert await task == [Totals(DAY, 2, 2)]
