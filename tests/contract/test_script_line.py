"""Calls of a script on a connection of their own, over every server."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from service.base.terms import Rate
from service.quota.lease_store import SCRIPT, Lease, LeaseStore, leased
from service.redis import script_line
from service.redis.client import RedisStore
from service.redis.errors import StoreUnavailable
from tests.contract.conftest import Backend
from tests.support.waiting import eventually

RATE = Rate(10, 60, 500)


@pytest.fixture
async def store(real: Backend) -> AsyncIterator[RedisStore]:
    store = real.store()
    yield store
    await store.stop()


@pytest.fixture
async def leases(store: RedisStore) -> AsyncIterator[LeaseStore]:
    """With its connection open: the first lease went by the client."""
    made = LeaseStore(store)
    assert (await leased(made, "first", RATE, 1, 1)).granted == 1
    await eventually(lambda: own(made) is not None)
    yield made
    await made.stop()


def own(leases: LeaseStore) -> object:
    line = leases._line
    assert line._own is not None
    return line._own.current


async def test_a_connection_of_its_own_grants_what_the_client_grants(store: RedisStore, leases: LeaseStore) -> None:
    """Many at once, each its own."""
    wanted = [1 + number % 5 for number in range(200)]
    answers = await asyncio.gather(*(leased(leases, f"k{at}", RATE, one, 1) for at, one in enumerate(wanted)))
    assert [answer.granted for answer in answers] == wanted
    assert own(leases) is not None


async def test_a_server_that_forgot_the_script_is_sent_it_by_the_same_connection(
    real: Backend, leases: LeaseStore
) -> None:
    real.command("SCRIPT", "FLUSH")
    answers = await asyncio.gather(*(leased(leases, "k", RATE, 1, 1) for _ in range(3)))
    assert [answer.granted for answer in answers] == [1, 1, 1]
    assert own(leases) is not None
    assert real.command("SCRIPT", "EXISTS", SCRIPT.sha) == [1]


async def test_a_reply_that_has_arrived_is_read_before_the_loop_turns(
    leases: LeaseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a loop whose turns are long, calls are sent at once, too."""
    monkeypatch.setattr(script_line, "_LONG_TURN_SECONDS", -1.0)
    await leased(leases, "k", RATE, 1, 1)
    told: list[Lease | StoreUnavailable] = []
    leases.ask("k", RATE, 2, 1, told.append)
    assert told == []
    while not told:  # no turn passes here: the server answers meanwhile
        leases.read_early()
    assert [lease.granted for lease in told if isinstance(lease, Lease)] == [2]
    assert (await leased(leases, "k", RATE, 3, 1)).granted == 3


async def test_who_waits_on_a_connection_that_is_cut_is_told_and_the_next_goes_by_the_client(
    real: Backend, leases: LeaseStore
) -> None:
    real.command("CLIENT", "PAUSE", "60000", "WRITE")
    try:
        waiting = [asyncio.create_task(leased(leases, "k", RATE, 1, 1)) for _ in range(3)]
        await asyncio.sleep(0)
        real.command("CLIENT", "KILL", "TYPE", "normal")
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(one) for one in ended] == [StoreUnavailable] * 3
    finally:
        real.command("CLIENT", "UNPAUSE")

    async def granted() -> bool:
        try:
            return (await leased(leases, "k", RATE, 1, 1)).granted == 1
        except StoreUnavailable:
            return False

    await eventually(granted)
    await eventually(lambda: own(leases) is not None)


async def test_stopping_tells_whoever_waits(real: Backend, leases: LeaseStore) -> None:
    real.command("CLIENT", "PAUSE", "60000", "WRITE")
    try:
        waiting = asyncio.create_task(leased(leases, "k", RATE, 1, 1))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await leases.stop()
        with pytest.raises(StoreUnavailable):
            await waiting
    finally:
        real.command("CLIENT", "UNPAUSE")


async def test_an_error_reaches_the_call_that_it_is_for(real: Backend, leases: LeaseStore) -> None:
    """And is no reason to leave the connection."""
    real.command("CONFIG", "SET", "maxmemory", "1")
    try:
        with pytest.raises(StoreUnavailable, match="maxmemory"):
            await leased(leases, "k", RATE, 1, 1)
    finally:
        real.command("CONFIG", "SET", "maxmemory", "0")
    assert (await leased(leases, "k", RATE, 1, 1)).granted == 1
    assert own(leases) is not None
