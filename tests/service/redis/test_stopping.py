"""Stores and listeners stop, at whatever moment of a conversation they are told to."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from service.redis import client, invalidation
from service.redis.client import RedisStore
from service.redis.connections import open_client
from service.redis.invalidation import InvalidationListener
from service.redis.primary import Primary
from tests.support.waiting import PATIENCE

TIMEOUT = 0.02


@pytest.fixture
async def silent() -> AsyncIterator[str]:
    """The URL of a server that never answers."""
    talking: set[asyncio.Task[None]] = set()

    async def read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talking.add(asyncio.create_task(read(reader, writer)))

    listening = await asyncio.start_server(connected, "127.0.0.1", 0)
    yield f"redis://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    listening.close()
    await asyncio.gather(*talking)


@pytest.fixture(autouse=True)
def restless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries follow each other closely, so that few moments lie between two."""
    monkeypatch.setattr(invalidation, "_RECONNECT_SECONDS", 0.005)
    monkeypatch.setattr(client, "PROBE_SECONDS", 0.005)


async def test_a_listener_stops_at_any_moment(silent: str) -> None:
    async def live(seconds: float) -> None:
        listener = InvalidationListener(Primary(silent), "k:", lambda _: None, timeout=TIMEOUT)
        listener.start()
        await asyncio.sleep(seconds)
        await listener.stop()

    for batch in range(8):
        await asyncio.wait_for(asyncio.gather(*(live((number + batch / 8) * 0.002) for number in range(25))), PATIENCE)


async def test_a_store_stops_at_any_moment(silent: str) -> None:
    async def live(seconds: float) -> None:
        store = RedisStore("cache", silent, open_client(silent, timeout=TIMEOUT))
        await store.start()
        await asyncio.sleep(seconds)
        await store.stop()

    await asyncio.wait_for(asyncio.gather(*(live(number * 0.0005) for number in range(200))), PATIENCE)
