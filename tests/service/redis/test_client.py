"""One Redis with a budget: every call ends within it, whatever becomes of the server."""

import asyncio
import logging
import socket
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from redis.asyncio import BlockingConnectionPool, Redis

from service.redis.client import FAILURES_TO_OPEN, RedisStore
from service.redis.connections import open_client
from service.redis.errors import StoreUnavailable
from tests.support.valkey import ValkeyProcess
from tests.support.waiting import eventually

BUDGET = 0.05
# What the machine may add to the quickest of several calls.
SLACK = 0.15


@pytest.fixture
def dead_port() -> Iterator[int]:
    """Bound, so that no other user can listen on it, and not listening."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.fixture
def black_hole() -> Iterator[int]:
    """Accepts connections and never says anything."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        yield listening.getsockname()[1]


@pytest.fixture
def server(short_folder: Path) -> Iterator[ValkeyProcess]:
    process = ValkeyProcess(short_folder / "hurt").start()
    yield process
    process.kill()


@pytest.fixture
async def store(server: ValkeyProcess) -> AsyncIterator[RedisStore]:
    made = _store(server.url)
    await made.start()
    assert made.healthy
    yield made
    await made.stop()


def _store(url: str, retries: int = 0) -> RedisStore:
    return RedisStore("cache", url, open_client(url, timeout=BUDGET, retries=retries))


async def _fails(store: RedisStore) -> tuple[float, bool]:
    """Seconds that it took, and whether the server was asked at all."""
    asked: list[object] = []

    async def get(client: Redis) -> object:
        asked.append(client)
        return await client.get("x")

    began = time.perf_counter()
    with pytest.raises(StoreUnavailable):
        await store.call(get)
    return time.perf_counter() - began, bool(asked)


async def test_a_role_that_cannot_be_asked_for_is_no_failure(store: RedisStore, server: ValkeyProcess) -> None:
    server.stall()
    looks = store._looks
    await eventually(lambda: store._looks >= looks + 5)
    assert store.healthy
    server.go_on()


async def _opens_within(store: RedisStore, budget: float) -> None:
    """The breaker opens after so many calls that cost the budget; the next one asks nobody."""
    spent = [await _fails(store) for _ in range(FAILURES_TO_OPEN)]
    assert all(asked for _, asked in spent)
    assert min(seconds for seconds, _ in spent) < budget + SLACK
    _, asked = await _fails(store)
    assert not asked
    assert not store.healthy


async def _answers(store: RedisStore) -> bool:
    try:
        await store.call(lambda client: client.get("x"))
    except StoreUnavailable:
        return False
    return True


@pytest.mark.parametrize(("retries", "budget"), [(0, BUDGET), (1, 2 * BUDGET)])
@pytest.mark.parametrize("kind", ["dead_port", "black_hole", "no socket"])
async def test_a_server_that_is_not_there_costs_no_more_than_the_budget(
    kind: str, retries: int, budget: float, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = f"unix://{tmp_path}/none"
    if kind != "no socket":
        url = f"redis://127.0.0.1:{request.getfixturevalue(kind)}/0"
    store = _store(url, retries)
    await _opens_within(store, budget)
    await store.stop()


async def test_a_stalled_server_costs_the_budget_and_comes_back(server: ValkeyProcess, store: RedisStore) -> None:
    await store.call(lambda client: client.set("x", b"1"))
    server.stall()
    try:
        await _opens_within(store, BUDGET)
    finally:
        server.go_on()
    await eventually(lambda: _answers(store))
    assert store.healthy
    assert await store.call(lambda client: client.get("x")) == b"1"


async def test_a_server_that_comes_after_us_is_found_without_a_request(short_folder: Path) -> None:
    server = ValkeyProcess(short_folder / "late")
    store = _store(server.url)
    await store.start()
    assert not store.healthy
    server.start()
    try:
        await eventually(lambda: store.healthy)
    finally:
        await store.stop()
        server.kill()


async def test_an_outage_is_logged_once(
    server: ValkeyProcess, store: RedisStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "forecast.redis")
    server.kill()
    for _ in range(10):
        await _fails(store)
    server.start()
    await eventually(lambda: store.healthy)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert str(server.socket) in caplog.text


def test_a_store_without_a_primary_is_lost_until_it_has_one() -> None:
    store = RedisStore("key store", "redis://nowhere", None)
    before = time.monotonic()
    store.succeeded()
    assert store.lost_at >= before


async def test_more_calls_than_connections_wait_for_one_and_open_nothing(server: ValkeyProcess) -> None:
    """Our own pool being empty is no outage of the server."""
    pool = BlockingConnectionPool.from_url(server.url, max_connections=1, timeout=BUDGET, socket_timeout=5)
    store = RedisStore("cache", server.url, Redis.from_pool(pool))

    async def slow(client: Redis) -> object:
        return await client.execute_command("BLPOP", "never", 0.5)  # type: ignore[no-untyped-call]

    assert await _answers(store)
    holding = asyncio.create_task(store.call(slow))
    await asyncio.sleep(0)
    results = await asyncio.gather(*(_answers(store) for _ in range(FAILURES_TO_OPEN + 2)))
    assert results == [False] * (FAILURES_TO_OPEN + 2)
    assert store.healthy
    await holding
    assert await _answers(store)
    await store.stop()


def test_a_url_that_is_none_is_an_error_at_once() -> None:
    with pytest.raises(ValueError, match="Redis URL"):
        open_client("http://example.test", timeout=BUDGET)


async def test_a_missing_right_is_named_with_the_document_of_rights(store: RedisStore) -> None:
    """An upgrade may need more of them: what worked yesterday is refused then."""
    await store.call(lambda client: client.acl_setuser("default", commands=["-set"]))
    with pytest.raises(StoreUnavailable, match=r"no permissions .*operate/rights\.md"):
        await store.call(lambda client: client.set("a", "b"))
