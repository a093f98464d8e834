"""Commands in one write: each gets its own reply, or its own error."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from service.redis.client import RedisStore
from service.redis.connections import open_client
from service.redis.errors import StoreRefused, StoreUnavailable
from service.redis.name_store import NameCommand
from tests.support.valkey import ValkeyProcess

# Long enough for a pause of the server, which its tests end.
BUDGET = 5.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyProcess]:
    process = ValkeyProcess(Path(tmp_path_factory.mktemp("p"))).start()
    yield process
    process.kill()


@pytest.fixture
async def store(server: ValkeyProcess) -> AsyncIterator[RedisStore]:
    made = RedisStore("cache", server.url, open_client(server.url, timeout=BUDGET))
    await made.start()
    yield made
    await made.stop()


def commands(*words: tuple[str | int | bytes, ...]) -> list[NameCommand]:
    return [NameCommand("", one) for one in words]


async def test_each_command_has_its_reply(store: RedisStore) -> None:
    """Bytes are as they were stored."""
    value = bytes(range(256)) * 4
    asked = commands(("SET", "a", value, "EX", 60), ("GET", "a"), ("GET", "nothing"), ("TTL", "a"))
    assert await store.pipelined(asked) == [b"OK", value, None, 60]


async def test_an_error_is_the_reply_of_its_command_alone(store: RedisStore) -> None:
    stored, error, value = await store.pipelined(commands(("SET", "b", 7), ("LPUSH", "b", 1), ("GET", "b")))
    assert (stored, value) == (b"OK", b"7")
    assert isinstance(error, StoreRefused)


async def test_a_call_that_is_cancelled_leaves_no_reply_to_the_next(store: RedisStore) -> None:
    """Its connection ends with it."""
    await store.pipelined(commands(("SET", "c", "mine"), ("DEL", "list")))
    cancelled = asyncio.create_task(store.pipelined(commands(("GET", "c"), ("BLPOP", "list", 2))))
    await asyncio.sleep(0.05)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    for number in range(20):
        assert await store.pipelined(commands(("ECHO", number))) == [b"%d" % number]


async def test_a_server_that_went_away_is_unavailable_and_the_next_call_finds_it_again(
    store: RedisStore, server: ValkeyProcess
) -> None:
    client = store._client
    assert client is not None
    await client.client_kill_filter(_type="normal", skipme=True)
    with contextlib.suppress(StoreUnavailable):
        await store.pipelined(commands(("ECHO", "x")))
    assert await store.pipelined(commands(("ECHO", "y"))) == [b"y"]
