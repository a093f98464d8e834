"""Entries that are stored: each is known to be stored or not, and a slow store fills no memory."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from service.cache import writer
from service.cache.writer import EntryWriter
from service.redis.client import FAILURES_TO_OPEN
from tests.support.redis_double import WiredStore
from tests.support.waiting import settled


@pytest.fixture
async def store() -> AsyncIterator[WiredStore]:
    made = WiredStore()
    yield made
    await made.stop()


def stores(store: WiredStore, number: int, size: int = 1) -> tuple[EntryWriter, list["asyncio.Future[bool]"]]:
    entries = EntryWriter(store, 60)
    return entries, [entries.put(f"k{at}", b"x" * size) for at in range(number)]


async def test_a_failure_is_of_its_entry_alone(store: WiredStore) -> None:
    store.timeout = 0.05
    entries, stored = stores(store, 5)
    await settled()
    store.wires[0].arrive(b"+OK\r\n-OOM command not allowed\r\n-READONLY x\r\n")
    assert await asyncio.gather(*stored) == [True, False, False, False, False]
    assert entries.failed == {"full": 1, "read_only": 1, "away": 2}


async def test_an_unexpected_reply_stores_nothing_behind_it(store: WiredStore) -> None:
    entries, stored = stores(store, 3)
    await settled()
    store.wires[0].arrive(b"+OK\r\n$2\r\nno\r\n+OK\r\n")
    assert await asyncio.gather(*stored) == [True, False, False]
    assert entries.failed == {"away": 2}
    assert not store.line.is_open


async def test_what_a_slow_store_cannot_take_is_not_stored(store: WiredStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_MOST_BYTES", 1000)
    entries, stored = stores(store, 4, 400)
    await settled()
    assert [one.done() for one in stored] == [False, False, True, True]
    store.wires[0].arrive(b"+OK\r\n" * 2)
    assert await asyncio.gather(*stored) == [True, True, False, False]
    assert entries.failed == {"slow": 2}
    last = entries.put("k4", b"x" * 900)
    await settled()
    store.wires[0].arrive(b"+OK\r\n")
    assert await last


async def test_few_bytes_are_under_way_at_once(store: WiredStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Look-ups wait behind them. The others follow when these are stored."""
    monkeypatch.setattr(writer, "_MOST_UNDER_WAY_BYTES", 1000)
    _, stored = stores(store, 7, 500)
    for number in (2, 2, 2, 1):
        await settled()
        [wire] = store.wires
        assert len(wire.taken()) == number
        wire.arrive(b"+OK\r\n" * number)
    assert await asyncio.gather(*stored) == [True] * 7


async def test_a_refusal_lasts_until_a_trial_is_stored(store: WiredStore, caplog: pytest.LogCaptureFixture) -> None:
    entries, stored = stores(store, 4)
    await settled()
    store.wires[0].arrive(b"-OOM x\r\n+OK\r\n-OOM x\r\n+OK\r\n")
    await asyncio.gather(*stored)
    assert (entries.refusal or "").startswith("it is full")
    trial = asyncio.create_task(entries.try_servers("trial"))
    await settled()
    store.wires[0].arrive(b"+OK\r\n")
    await trial
    assert (entries.refusal, entries.failed) == (None, {"full": 2})
    assert sum("rejects writes" in message for message in caplog.messages) == 1


async def test_an_unreachable_store_refuses_no_entry(store: WiredStore) -> None:
    for _ in range(FAILURES_TO_OPEN):
        store.failed(ConnectionResetError("gone"), answered=False)
    entries, stored = stores(store, 2)
    await entries.try_servers("trial")
    assert await asyncio.gather(*stored) == [False, False]
    assert (entries.refusal, entries.failed) == (None, {"away": 2})
