"""Keys that a worker asks for on a connection of its own, over real servers."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from service.keys.errors import ForeignStoreError
from service.keys.names import CONTROL, record_name
from service.keys.record import DamagedRecordError
from service.keys.store import Found, FoundKey, KeyStore
from service.redis.errors import StoreUnavailable
from tests.contract.conftest import Backend
from tests.support.key_store import PEPPER
from tests.support.valkey import ValkeyProcess
from tests.support.waiting import PATIENCE, eventually, settled


@pytest.fixture
async def keys(real: Backend, tmp_path: Path) -> AsyncIterator[KeyStore]:
    """With its connection open: the first look-up went by the client."""
    store = real.store(timeout=5)
    made = KeyStore(store, PEPPER, tmp_path)
    await asked(made, "0" * 12)
    await eventually(lambda: has_connection(made))
    yield made
    await made.stop_asking()
    await store.stop()


def has_connection(keys: KeyStore) -> bool:
    own = keys._asking.own
    return own is not None and own.current is not None


async def asked(keys: KeyStore, key_id: str) -> Found:
    answer: asyncio.Future[Found] = asyncio.get_running_loop().create_future()
    keys.ask(key_id, answer.set_result)
    return await asyncio.wait_for(answer, PATIENCE)


async def test_many_at_once_are_each_told_of_their_own_key(keys: KeyStore) -> None:
    issued = [(await keys.issue("acme", "", None))[1] for _ in range(40)]
    ids = [*(key.key_id for key in issued), "0" * 12]
    told = await asyncio.gather(*(asked(keys, key_id) for key_id in ids * 3))
    assert [found.key if isinstance(found, FoundKey) else found for found in told] == [*issued, None] * 3
    assert [isinstance(found, FoundKey) and found.control is not None for found in told] == [True] * len(told)


async def test_what_is_damaged_is_told_as_the_client_tells_it(real: Backend, keys: KeyStore) -> None:
    """A record's damage is its owner's alone; without the sentinel no key can be judged."""
    text, kind, good = [(await keys.issue("acme", "", None))[1] for _ in range(3)]
    real.command("SET", record_name(text.key_id), "not json")
    real.command("DEL", record_name(kind.key_id))
    real.command("RPUSH", record_name(kind.key_id), "x")
    told = await asyncio.gather(*(asked(keys, key.key_id) for key in (text, kind, good)))
    assert [type(one) for one in told] == [DamagedRecordError, DamagedRecordError, FoundKey]
    real.command("SET", CONTROL, "{")
    assert type(await asked(keys, good.key_id)) is ForeignStoreError
    assert has_connection(keys), "damage is a reply"


async def test_who_waits_on_a_connection_that_is_cut_is_told_and_the_next_finds_its_key(
    real: Backend, keys: KeyStore
) -> None:
    _, key = await keys.issue("acme", "", None)
    waiting = [asyncio.create_task(asked(keys, key.key_id)) for _ in range(3)]
    await asyncio.sleep(0)
    real.command("CLIENT", "KILL", "TYPE", "normal")
    assert [type(one) for one in await asyncio.gather(*waiting)] == [StoreUnavailable] * 3

    async def found() -> bool:
        one = await asked(keys, key.key_id)
        return isinstance(one, FoundKey) and one.key == key

    await eventually(found)
    await eventually(lambda: has_connection(keys))


async def test_who_waits_when_asking_ends_is_told(process: ValkeyProcess, keys: KeyStore) -> None:
    process.stall()
    try:
        waiting = asyncio.create_task(asked(keys, "0" * 12))
        await settled()
        await keys.stop_asking()
        assert isinstance(await waiting, StoreUnavailable)
    finally:
        process.go_on()
