"""Calls of a script on a connection of their own, over every server."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from service.base.terms import Rate
from service.quota.lease_store import SCRIPT, Lease, LeaseStore, lease_name, leased
from service.redis import line
from service.redis.client import RedisStore
from service.redis.errors import StoreUnavailable
from tests.contract.conftest import Backend
from tests.support.waiting import PATIENCE, eventually, until

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
    assert leases._line.own is not None
    return leases._line.own.current


async def test_a_connection_of_its_own_grants_what_the_client_grants(store: RedisStore, leases: LeaseStore) -> None:
    """Many at once, each its own."""
    wanted = [1 + number % 5 for number in range(200)]
    answers = await asyncio.gather(*(leased(leases, f"k{at}", RATE, one, 1) for at, one in enumerate(wanted)))
    assert [answer.granted for answer in answers] == wanted
    assert own(leases) is not None


async def test_a_server_that_forgot_the_script_is_sent_it(real: Backend, leases: LeaseStore) -> None:
    """By the client, and the connection stays."""
    real.command("SCRIPT", "FLUSH")
    answers = await asyncio.gather(*(leased(leases, "k", RATE, 1, 1) for _ in range(3)))
    assert [answer.granted for answer in answers] == [1, 1, 1]
    assert own(leases) is not None
    assert real.command("SCRIPT", "EXISTS", SCRIPT.sha) == [1]


async def test_where_turns_of_the_loop_are_long_a_call_is_sent_at_once(
    real: Backend, leases: LeaseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has it, and not a turn has passed here."""
    monkeypatch.setattr(line, "_LONG_TURN_SECONDS", -1.0)
    await leased(leases, "k", RATE, 1, 1)
    told: list[Lease | StoreUnavailable] = []
    leases.ask("other", RATE, 2, 1, told.append)
    until(lambda: real.command("EXISTS", lease_name("other")) == 1)
    assert told == []
    await eventually(lambda: bool(told))
    assert told == [Lease(2, RATE.burst - 2, 0)]


async def test_who_waits_on_a_connection_that_is_cut_is_told_and_the_next_goes_by_the_client(
    real: Backend, leases: LeaseStore
) -> None:
    real.command("CLIENT", "PAUSE", "60000", "WRITE")
    try:
        waiting = [asyncio.create_task(leased(leases, "k", RATE, 1, 1)) for _ in range(3)]
        await asyncio.sleep(0)
        real.command("CLIENT", "KILL", "TYPE", "normal")
        ended = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), PATIENCE)
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
            await asyncio.wait_for(waiting, PATIENCE)
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


async def test_a_server_that_became_a_replica_is_left(real: Backend, store: RedisStore, leases: LeaseStore) -> None:
    real.command("REPLICAOF", "127.0.0.1", "1")
    try:
        with pytest.raises(StoreUnavailable, match="READONLY"):
            await leased(leases, "k", RATE, 1, 1)
        assert store.is_away
    finally:
        real.command("REPLICAOF", "NO", "ONE")
