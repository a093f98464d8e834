"""Usage on its own connection, whose server lies: no key gets another one's total. The test is the server."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from service.quota.batch import NO_BATCH, Batch
from service.quota.kept import KeptBatches
from service.quota.usage_store import Gap, Refused, Reply, Totals, UsageStore
from service.redis.errors import StoreUnavailable
from tests.support.script_server import ScriptServer, connection
from tests.support.waiting import eventually

# 2026-11-20
DAY = 20_777
ONE = Batch(1, ((DAY, "forecast", "answered", 1),))

Told = list[Reply | StoreUnavailable]


@pytest.fixture
async def usage(server: ScriptServer) -> AsyncIterator[UsageStore]:
    """With its connection open: the first call went by the client."""
    made = UsageStore(server)
    [told] = ask(made, "first")
    await eventually(lambda: bool(told) and connection(made._line) is not None)
    assert told == [Totals(DAY, 1, 1)]
    yield made
    await made.stop()


def ask(usage: UsageStore, *key_ids: str, kept: KeptBatches | None = None) -> list[Told]:
    """What each of them is told."""
    told: list[Told] = [[] for _ in key_ids]
    for key_id, heard in zip(key_ids, told, strict=True):
        usage.ask("w", key_id, ONE, DAY, kept or KeptBatches(), heard.append)
    return told


async def sent(usage: UsageStore, server: ScriptServer, *key_ids: str) -> list[Told]:
    told = ask(usage, *key_ids)
    await eventually(lambda: len(server.transports[0].calls) == len(key_ids))
    return told


def reply(call: int, total: int = 1, outcome: int = 1) -> bytes:
    return b"*6\r\n:%d\r\n:%d\r\n:%d\r\n:1\r\n$2\r\nid\r\n:%d\r\n" % (outcome, total, total, call)


async def test_a_reply_is_told_in_the_turn_in_which_it_arrives(server: ScriptServer, usage: UsageStore) -> None:
    """To the call that it is for, however replies are cut."""
    a, b = await sent(usage, server, "a", "b")
    first, second = server.transports[0].calls
    for byte in reply(first, 5):
        assert a == []
        connection(usage._line).data_received(bytes([byte]))
    assert (a, b) == ([Totals(DAY, 5, 5)], [])
    connection(usage._line).data_received(reply(second, 7, outcome=2))
    assert (a, b) == ([Totals(DAY, 5, 5)], [Gap(1, Totals(DAY, 7, 7))])


@pytest.mark.parametrize("lie", ["one too many", "one too few", "nothing of the kind"])
async def test_after_a_reply_that_is_not_to_its_call_nothing_is_believed(
    server: ScriptServer, usage: UsageStore, lie: str
) -> None:
    """Else a batch would be taken for stored that is not, and a quota be judged by another key's total."""
    told = await sent(usage, server, "a", "b", "c")
    first, *others = map(reply, server.transports[0].calls)
    wrong = {
        "one too many": [first, *others],
        "one too few": others[1:],
        "nothing of the kind": [b"$2\r\nOK\r\n", *others],
    }[lie]
    connection(usage._line).data_received(first + b"".join(wrong))
    assert told[0] == [Totals(DAY, 1, 1)]
    for heard in told[1:]:
        [error] = heard
        assert isinstance(error, StoreUnavailable)
        assert "makes no sense" in str(error)
    assert server.transports[0].aborted
    assert connection(usage._line) is None
    assert not server.is_away


async def test_a_refusal_is_told_to_the_call_that_it_is_for(server: ScriptServer, usage: UsageStore) -> None:
    """It is a reply: the connection stays."""
    a, b = await sent(usage, server, "a", "b")
    connection(usage._line).data_received(b"-DAMAGED s:{a}\r\n" + reply(server.transports[0].calls[1]))
    assert (a, b) == ([Refused("DAMAGED s:{a}")], [Totals(DAY, 1, 1)])
    assert connection(usage._line) is not None


async def test_a_damaged_reply_to_its_call_refuses_that_one_alone(server: ScriptServer, usage: UsageStore) -> None:
    """It has the number of its call, so the next ones are not another's."""
    a, b = await sent(usage, server, "a", "b")
    first, second = map(reply, server.transports[0].calls)
    connection(usage._line).data_received(first.replace(b"*6\r\n:1", b"*6\r\n:9") + second)
    assert [type(told) for told in a] == [Refused]
    assert b == [Totals(DAY, 1, 1)]
    assert connection(usage._line) is not None


async def test_while_a_restarted_server_loads_the_client_is_asked(server: ScriptServer, usage: UsageStore) -> None:
    """It tells that the server is away, which is no refusal."""
    [told] = await sent(usage, server, "a")
    connection(usage._line).data_received(b"-LOADING Redis is loading the dataset in memory\r\n")
    await eventually(lambda: bool(told))
    assert told == [Totals(DAY, 1, 1)], "of the double, which does not load"
    assert connection(usage._line) is not None


@pytest.mark.parametrize("ends", ["all", "lost", "cancelled"])
async def test_batches_that_are_added_together_have_each_its_own_reply(
    server: ScriptServer, usage: UsageStore, ends: str
) -> None:
    """If one is missing, all are sent again, which is safe."""
    adding = asyncio.create_task(usage.add("w", [("a", ONE), ("b", ONE)], DAY))
    await eventually(lambda: len(server.transports[0].calls) == 2)
    first, second = server.transports[0].calls
    connection(usage._line).data_received(reply(first, 5))
    if ends == "cancelled":
        adding.cancel()
        await asyncio.wait([adding])
    if ends == "lost":
        connection(usage._line).connection_lost(None)
        with pytest.raises(StoreUnavailable):
            await adding
        return
    connection(usage._line).data_received(reply(second, 7))
    await asyncio.wait([adding])
    assert adding.cancelled() == (ends == "cancelled")
    assert adding.cancelled() or adding.result() == [Totals(DAY, 5, 5), Totals(DAY, 7, 7)]
    assert connection(usage._line) is not None


async def test_stopping_tells_whoever_waits(server: ScriptServer, usage: UsageStore) -> None:
    told = await sent(usage, server, "a", "b")
    await usage.stop()
    assert [type(one) for heard in told for one in heard] == [StoreUnavailable] * 2


async def test_a_store_whose_id_is_damaged_is_asked_all_the_same(server: ScriptServer, usage: UsageStore) -> None:
    """It goes back with the next call."""
    kept = KeptBatches()
    [first] = ask(usage, "a", kept=kept)
    await eventually(lambda: len(server.transports[0].calls) == 1)
    connection(usage._line).data_received(reply(server.transports[0].calls[0]).replace(b"id", b"\xff\xfe"))
    assert first == [Totals(DAY, 1, 1)]
    [second] = ask(usage, "a", kept=kept)
    await eventually(lambda: len(server.transports[0].calls) == 2)
    connection(usage._line).data_received(reply(server.transports[0].calls[1], 2))
    assert second == [Totals(DAY, 2, 2)]


async def test_totals_alone_are_asked_for_in_the_same_way(server: ScriptServer, usage: UsageStore) -> None:
    told: Told = []
    usage.ask("", "a", NO_BATCH, DAY, KeptBatches(), told.append)
    await eventually(lambda: len(server.transports[0].calls) == 1)
    connection(usage._line).data_received(reply(server.transports[0].calls[0], 3, outcome=0))
    assert told == [Totals(DAY, 3, 3)]
