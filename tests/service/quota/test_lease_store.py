"""Leases from Redis: shared round trips, and replies that are checked."""

import asyncio
from typing import Any

import pytest

from service.base.terms import Rate
from service.quota.lease_store import Lease, LeaseStore
from service.redis.errors import StoreUnavailable
from tests.support.redis_double import WiredStore, encoded
from tests.support.waiting import settled

RATE = Rate(10, 1, 5)


async def answered(reply: Any) -> tuple[WiredStore, list["asyncio.Future[Lease]"]]:
    """A lease of up to three tokens to which the server replies this, and a second one, which is granted."""
    store = WiredStore()
    leases = LeaseStore(store)
    answers = [leases.lease("k", RATE, 3, 1) for _ in range(2)]
    await settled()
    store.wires[0].arrive(encoded(reply) + encoded([3, 2, 0, 9, 2]))
    return store, answers


@pytest.mark.parametrize(
    "reply",
    [
        *(None, b"OK", [], [1, 4, 0, 9], [1, 4, 0, 9, 1, 1], [b"1", 4, 0, 9, 1], [-1, 4, 0, 9, 1]),
        *([4, 0, 0, 9, 1], [3, 6, 0, 9, 1], [3, -1, 0, 9, 1], [3, 2, 5, 9, 1], [2, 0, 0, 9, 1], [2, 1, 5, 9, 1]),
        *([2, 0, 100_001, 9, 1], [2, 0, -5, 9, 1], [3, 2, 0, 9, 2], [3, 2, 0, 9, None]),
    ],
    ids=repr,
)
async def test_after_an_unexpected_reply_nothing_is_believed(reply: Any) -> None:
    """More than was wanted, a bucket that leaks, waiting for ever, the reply to another call: the store is as good as
    away, and no key gets another one's tokens."""
    store, answers = await answered(reply)
    for answer in answers:
        with pytest.raises(StoreUnavailable, match="unexpected reply"):
            await answer
    assert (store.wires[0].ended, store.line.is_open, store.is_unreachable) == (1, False, False)


@pytest.mark.parametrize(
    ("reply", "lease"), [([3, 2, 0, 9, 1], Lease(3, 2, 0)), ([2, 0, 100_000, 9, 1], Lease(2, 0, 100_000))], ids=repr
)
async def test_an_expected_reply_is_believed(reply: Any, lease: Lease) -> None:
    store, answers = await answered(reply)
    assert await asyncio.gather(*answers) == [lease, Lease(3, 2, 0)]
    assert store.line.is_open
