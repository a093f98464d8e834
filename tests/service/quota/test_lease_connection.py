"""Leases from a server that lies: no key gets another one's tokens. The test is the server."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from service.base.terms import Rate
from service.quota.lease_store import Lease, LeaseStore
from service.redis.errors import StoreUnavailable
from tests.support.redis_double import Wire, WiredStore
from tests.support.waiting import settled

RATE = Rate(10, 1, 5)
GRANTED = Lease(1, 4, 0)


@pytest.fixture
async def server() -> AsyncIterator[WiredStore]:
    store = WiredStore()
    yield store
    await store.stop()


async def asked(server: WiredStore, number: int) -> tuple[Wire, list["asyncio.Future[Lease]"], list[int]]:
    """So many keys that wait for their leases: the connection, what they wait for, and the numbers of their calls."""
    leases = LeaseStore(server)
    answers = [leases.lease(f"k{at}", RATE, 1, 1) for at in range(number)]
    await settled()
    [wire] = server.wires
    return wire, answers, [int(words[-1]) for words in wire.taken()]


def granted(call: int) -> bytes:
    return b"*5\r\n:1\r\n:4\r\n:0\r\n:1\r\n:%d\r\n" % call


async def test_replies_go_to_their_calls(server: WiredStore) -> None:
    """However they are cut."""
    wire, answers, calls = await asked(server, 3)
    replies = b"".join(map(granted, calls))
    wire.arrive(replies, range(len(replies)))
    assert await asyncio.gather(*answers) == [GRANTED] * 3
    assert server.line.is_open


@pytest.mark.parametrize("lie", ["one too many", "one too few", "nothing of the kind", "a push", "damaged"])
async def test_after_a_reply_that_is_not_to_its_call_nothing_is_believed(server: WiredStore, lie: str) -> None:
    """It is sent before the second reply: the first call has its lease, the others fail."""
    wire, answers, calls = await asked(server, 4)
    first, *others = map(granted, calls)
    wrong = {
        "one too many": [first, *others],
        "one too few": others[1:],
        "nothing of the kind": [b"$2\r\nOK\r\n", *others],
        "a push": [b">1\r\n+x\r\n", *others],
        "damaged": [others[0].replace(b":4", b":9"), *others[1:]],
    }[lie]
    wire.arrive(first + b"".join(wrong))
    assert await answers[0] == GRANTED
    for answer in answers[1:]:
        with pytest.raises(StoreUnavailable, match="unexpected reply"):
            await answer
    assert (wire.ended, server.line.is_open, server.is_away) == (1, False, False)
    wire.arrive(granted(5))  # what was under way


async def test_an_error_in_place_of_a_lease_leaves_the_connection(server: WiredStore) -> None:
    """It is a reply."""
    wire, answers, calls = await asked(server, 2)
    wire.arrive(b"-BUSY Redis is busy\r\n" + granted(calls[1]))
    with pytest.raises(StoreUnavailable, match="BUSY"):
        await answers[0]
    assert await answers[1] == GRANTED
    assert server.line.is_open
