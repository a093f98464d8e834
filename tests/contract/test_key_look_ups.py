"""Keys that a worker asks for on a connection of its own, over real servers."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from service.keys.errors import DamagedRecordError, ForeignStoreError
from service.keys.reader import Found, FoundKey
from service.keys.record import IDENTITY, record_name
from service.keys.store import KeyStore
from service.redis.errors import StoreUnavailable
from tests.contract.conftest import Backend
from tests.support.key_store import PEPPER
from tests.support.valkey import ValkeyProcess
from tests.support.waiting import PATIENCE, eventually, settled


@pytest.fixture
async def keys(real: Backend, tmp_path: Path) -> AsyncIterator[KeyStore]:
    store = real.store(timeout=5)
    yield KeyStore(store, PEPPER, tmp_path)
    await store.stop()


async def asked(keys: KeyStore, key_id: str) -> Found:
    try:
        return await asyncio.wait_for(keys.find(key_id), PATIENCE)
    except (StoreUnavailable, ForeignStoreError) as error:
        return error


async def test_each_of_many_look_ups_gets_its_own_key(keys: KeyStore) -> None:
    issued = [(await keys.issue("acme", "", None))[1] for _ in range(40)]
    ids = [*(key.key_id for key in issued), "0" * 12]
    reported = await asyncio.gather(*(asked(keys, key_id) for key_id in ids * 3))
    assert [found.key if isinstance(found, FoundKey) else found for found in reported] == [*issued, None] * 3
    assert [isinstance(found, FoundKey) and found.identity is not None for found in reported] == [True] * len(reported)


async def test_a_damaged_record_is_reported(real: Backend, keys: KeyStore) -> None:
    """A record's damage is its owner's alone; without the identity no key can be judged."""
    text, kind, good = [(await keys.issue("acme", "", None))[1] for _ in range(3)]
    real.command("SET", record_name(text.key_id), "not json")
    real.command("DEL", record_name(kind.key_id))
    real.command("RPUSH", record_name(kind.key_id), "x")
    reported = await asyncio.gather(*(asked(keys, key.key_id) for key in (text, kind, good)))
    assert [type(one) for one in reported] == [DamagedRecordError, DamagedRecordError, FoundKey]
    real.command("SET", IDENTITY, "{")
    assert type(await asked(keys, good.key_id)) is ForeignStoreError
    assert keys.redis.line.is_open, "damage is a reply"


async def test_look_ups_on_a_lost_connection_fail_and_the_next_finds_its_key(real: Backend, keys: KeyStore) -> None:
    _, key = await keys.issue("acme", "", None)
    await asked(keys, key.key_id)
    waiting = [asyncio.create_task(asked(keys, key.key_id)) for _ in range(3)]
    await asyncio.sleep(0)
    real.command("CLIENT", "KILL", "TYPE", "normal")
    assert [type(one) for one in await asyncio.gather(*waiting)] == [StoreUnavailable] * 3

    async def found() -> bool:
        one = await asked(keys, key.key_id)
        return isinstance(one, FoundKey) and one.key == key

    await eventually(found)


async def test_look_ups_fail_when_the_store_is_stopped(process: ValkeyProcess, keys: KeyStore) -> None:
    process.stall()
    try:
        waiting = asyncio.create_task(asked(keys, "0" * 12))
        await settled()
        await keys.redis.stop()
        assert isinstance(await waiting, StoreUnavailable)
    finally:
        process.go_on()
