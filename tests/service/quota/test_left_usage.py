"""LeftUsage: what a worker could not store is stored by one on another machine."""

from pathlib import Path
from typing import Any

import pytest

from service.quota.left_usage import NAME, LeftUsage
from service.quota.spool import OLDEST, Spool
from tests.support.usage import LossyStore, UsageWorker, count, stored


@pytest.fixture
def elsewhere(usage: UsageWorker, tmp_path: Path) -> UsageWorker:
    """A worker with another data folder."""
    return UsageWorker(usage.client, tmp_path / "elsewhere", usage.clock)


async def end_without_store(usage: UsageWorker, *keys: str) -> None:
    count(usage, *keys)
    usage.redis.away = True
    await usage.flusher.stop(seconds=0)


async def test_a_worker_on_another_machine_stores_what_is_left(usage: UsageWorker, elsewhere: UsageWorker) -> None:
    """Once, though the file in the data folder is found later; then nothing is left."""
    await end_without_store(usage, "a", "b", "a")
    assert await elsewhere.flusher.take_over.once()
    assert (await stored(elsewhere, "a"), await stored(elsewhere, "b")) == (2, 1)
    assert await usage.client.exists(NAME) == 0
    usage.redis.away = False
    await usage.flusher.take_over.once()
    assert await stored(usage, "a") == 2


async def test_a_clean_stop_leaves_nothing(usage: UsageWorker) -> None:
    count(usage)
    await usage.flusher.stop()
    assert await usage.client.exists(NAME) == 0


async def test_without_that_redis_it_is_in_the_data_folder_alone(
    usage: UsageWorker, other: UsageWorker, elsewhere: UsageWorker, caplog: pytest.LogCaptureFixture
) -> None:
    usage.beside.away = elsewhere.beside.away = True
    await end_without_store(usage)
    assert "on this machine alone" in caplog.text
    assert await elsewhere.flusher.take_over.once()
    assert await stored(elsewhere) == 0
    assert await other.flusher.take_over.once()
    assert await stored(other) == 1


async def test_without_a_data_folder_nothing_is_lost(
    usage: UsageWorker, elsewhere: UsageWorker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Spool, "write", full)
    await end_without_store(usage)
    assert "are lost" not in caplog.text
    assert await elsewhere.flusher.take_over.once()
    assert await stored(elsewhere) == 1


async def test_while_the_key_store_is_away_it_stays(usage: UsageWorker, elsewhere: UsageWorker) -> None:
    await end_without_store(usage)
    elsewhere.redis.away = True
    assert not await elsewhere.flusher.take_over.once()
    elsewhere.redis.away = False
    assert await elsewhere.flusher.take_over.once()
    assert await stored(elsewhere) == 1


@pytest.mark.parametrize("how", ["damaged", "another pepper", "another worker", "too old"])
async def test_what_cannot_be_trusted_is_not_counted(
    usage: UsageWorker,
    elsewhere: UsageWorker,
    how: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody can make a bill by writing to the cache. The log says so, once."""
    await end_without_store(usage)
    found: Any = await usage.client.hgetall(NAME)
    [(name, value)] = found.items()
    match how:
        case "damaged":
            await usage.client.hset(NAME, name, value.replace(b"forecast", b"projects"))
        case "another pepper":
            elsewhere.flusher.take_over._left = LeftUsage(LossyStore(usage.client), b"another")
        case "another worker":
            await usage.client.delete(NAME)
            await usage.client.hset(NAME, "somebody", value)
        case _:
            monkeypatch.setattr("service.quota.left_usage.OLDEST", -OLDEST)
    for _ in range(2):
        assert await elsewhere.flusher.take_over.once()
    assert await stored(elsewhere) == 0
    assert caplog.text.count("is not counted") == 1
