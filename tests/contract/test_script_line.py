"""Calls of a script on a connection of their own, over every server."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from service.base.terms import Rate
from service.quota.lease_store import SCRIPT, LeaseStore
from service.redis.client import RedisStore
from service.redis.errors import StoreUnavailable
from tests.contract.conftest import Backend
from tests.support.waiting import PATIENCE, eventually

RATE = Rate(10, 60, 500)


@pytest.fixture
async def store(real: Backend) -> AsyncIterator[RedisStore]:
    store = real.store()
    yield store
    await store.stop()


@pytest.fixture
async def leases(store: RedisStore) -> LeaseStore:
    """With its connection open."""
    made = LeaseStore(store)
    assert (await made.lease("first", RATE, 1, 1)).granted == 1
    return made


async def test_many_calls_at_once_have_each_its_own_reply(store: RedisStore, leases: LeaseStore) -> None:
    wanted = [1 + number % 5 for number in range(200)]
    answers = await asyncio.gather(*(leases.lease(f"k{at}", RATE, one, 1) for at, one in enumerate(wanted)))
    assert [answer.granted for answer in answers] == wanted
    assert store.line.is_open


async def test_a_server_that_forgot_the_script_is_sent_it(real: Backend, store: RedisStore, leases: LeaseStore) -> None:
    real.command("SCRIPT", "FLUSH")
    answers = await asyncio.gather(*(leases.lease("k", RATE, 1, 1) for _ in range(3)))
    assert [answer.granted for answer in answers] == [1, 1, 1]
    assert store.line.is_open
    assert real.command("SCRIPT", "EXISTS", SCRIPT.sha) == [1]


async def test_calls_on_a_lost_connection_fail_and_the_next_has_another(real: Backend, leases: LeaseStore) -> None:
    real.command("CLIENT", "PAUSE", "60000", "WRITE")
    try:
        waiting = [leases.lease("k", RATE, 1, 1) for _ in range(3)]
        await asyncio.sleep(0)
        real.command("CLIENT", "KILL", "TYPE", "normal")
        ended = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), PATIENCE)
        assert [type(one) for one in ended] == [StoreUnavailable] * 3
    finally:
        real.command("CLIENT", "UNPAUSE")

    async def granted() -> bool:
        try:
            return (await leases.lease("k", RATE, 1, 1)).granted == 1
        except StoreUnavailable:
            return False

    await eventually(granted)


async def test_stopping_fails_pending_calls(real: Backend, store: RedisStore, leases: LeaseStore) -> None:
    real.command("CLIENT", "PAUSE", "60000", "WRITE")
    try:
        waiting = leases.lease("k", RATE, 1, 1)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await store.stop()
        with pytest.raises(StoreUnavailable):
            await asyncio.wait_for(waiting, PATIENCE)
    finally:
        real.command("CLIENT", "UNPAUSE")


async def test_an_error_reaches_the_call_that_it_is_for(real: Backend, store: RedisStore, leases: LeaseStore) -> None:
    real.command("CONFIG", "SET", "maxmemory", "1")
    try:
        with pytest.raises(StoreUnavailable, match="full"):
            await leases.lease("k", RATE, 1, 1)
    finally:
        real.command("CONFIG", "SET", "maxmemory", "0")
    assert (await leases.lease("k", RATE, 1, 1)).granted == 1
    assert store.line.is_open


async def test_a_server_that_became_a_replica_is_left(real: Backend, store: RedisStore, leases: LeaseStore) -> None:
    real.command("REPLICAOF", "127.0.0.1", "1")
    try:
        with pytest.raises(StoreUnavailable, match="read-only"):
            await leases.lease("k", RATE, 1, 1)
        assert store.is_unreachable
    finally:
        real.command("REPLICAOF", "NO", "ONE")
