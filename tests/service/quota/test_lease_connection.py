"""Leases on their own connection, whose server lies: no key gets what another one asked for. The test is the server."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from service.base.terms import Rate
from service.quota.lease_store import Lease, LeaseStore, leased
from service.redis.errors import StoreUnavailable
from tests.support.script_server import ScriptServer, connection
from tests.support.waiting import PATIENCE, eventually

RATE = Rate(10, 1, 5)
GRANTED = Lease(1, 4, 0)


@pytest.fixture
async def leases(server: ScriptServer) -> AsyncIterator[LeaseStore]:
    """With its connection open: the first lease went by the client."""
    made = LeaseStore(server)
    await leased(made, "first", RATE, 1, 1)
    await eventually(lambda: connection(made._line) is not None)
    yield made
    await made.stop()


def granted(call: int) -> bytes:
    return b"*5\r\n:1\r\n:4\r\n:0\r\n:1\r\n:%d\r\n" % call


async def asked(leases: LeaseStore, server: ScriptServer, number: int) -> "Iterator[asyncio.Task[Lease]]":
    """So many keys that wait for their leases, which were sent."""
    before = len(server.transports[0].calls)
    tasks = [asyncio.create_task(leased(leases, f"k{at}", RATE, 1, 1)) for at in range(number)]
    await eventually(lambda: len(server.transports[0].calls) == before + number)
    return iter(tasks)


async def test_replies_go_to_their_calls(server: ScriptServer, leases: LeaseStore) -> None:
    """However they are cut."""
    tasks = await asked(leases, server, 3)
    replies = b"".join(map(granted, server.transports[0].calls))
    for byte in replies:
        connection(leases._line).data_received(bytes([byte]))
    assert [await task for task in tasks] == [GRANTED] * 3
    assert connection(leases._line) is not None


@pytest.mark.parametrize("lie", ["one too many", "one too few", "nothing of the kind", "a push", "damaged"])
async def test_after_a_reply_that_is_not_to_its_call_nothing_is_believed(
    server: ScriptServer, leases: LeaseStore, lie: str
) -> None:
    """It is sent before the second reply: the first call has its lease, the others are told that nothing is known."""
    tasks = await asked(leases, server, 4)
    first, *others = map(granted, server.transports[0].calls)
    wrong = {
        "one too many": [first, *others],
        "one too few": others[1:],
        "nothing of the kind": [b"$2\r\nOK\r\n", *others],
        "a push": [b">1\r\n+x\r\n", *others],
        "damaged": [others[0].replace(b":4", b":9"), *others[1:]],
    }[lie]
    own = connection(leases._line)
    own.data_received(first + b"".join(wrong))
    assert await next(tasks) == GRANTED
    for task in tasks:
        with pytest.raises(StoreUnavailable, match=r"makes no sense|was answered with"):
            await asyncio.wait_for(task, PATIENCE)
    assert server.transports[0].aborted
    own.data_received(granted(5))  # what was under way
    assert connection(leases._line) is None
    assert not server.is_away


async def test_an_error_in_place_of_a_lease_leaves_the_connection(server: ScriptServer, leases: LeaseStore) -> None:
    """It is a reply."""
    tasks = await asked(leases, server, 2)
    connection(leases._line).data_received(b"-BUSY Redis is busy\r\n" + granted(server.transports[0].calls[1]))
    with pytest.raises(StoreUnavailable, match="BUSY"):
        await next(tasks)
    assert await next(tasks) == GRANTED
    assert connection(leases._line) is not None
