"""What a worker could not store before it stopped is stored by another, once."""

import asyncio
import logging
from pathlib import Path

import msgspec
import pytest

from service.quota import flusher, orphaned_usage
from service.quota.names import counts_name
from service.quota.spool import FOLDER, Spooled
from tests.support.usage import UsageWorker, count, spool_files, stored
from tests.support.waiting import eventually

RECORD = counts_name("a", "2026-11")


async def test_a_worker_that_runs_takes_over_what_appears(
    usage: UsageWorker, other: UsageWorker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flusher, "FLUSH_SECONDS", 0.01)
    monkeypatch.setattr(orphaned_usage, "LOOK_SECONDS", 0.01)
    other.flusher.start()
    for times in (1, 2):
        late = UsageWorker(usage.client, tmp_path, usage.clock)
        late.redis.away = True
        count(late)
        await late.flusher.stop(seconds=0.02)
        await eventually(lambda: spool_files(tmp_path) == [])
        assert await stored(usage) == times
    await other.flusher.stop()


@pytest.mark.parametrize("bad", [b'{"x":' + b"[" * 100_000, b"\xff", None], ids=["nested", "not UTF-8", "lock"])
async def test_a_bad_file_keeps_no_other(
    usage: UsageWorker, other: UsageWorker, tmp_path: Path, bad: bytes | None
) -> None:
    usage.redis.away = True
    count(usage)
    await usage.flusher.stop(seconds=0.02)
    first = tmp_path / FOLDER / "0.json"  # it comes before all workers' own
    first.write_bytes(bad or b"{}")
    if bad is None:
        first.with_name(".0.lock").mkdir()
    await other.flusher.orphaned.once()
    assert await stored(other) == 1


async def test_two_that_take_over_the_same_count_it_once(
    usage: UsageWorker, other: UsageWorker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    usage.redis.away = True
    count(usage)
    await usage.flusher.flush()
    count(usage)
    await usage.flusher.stop(seconds=0.05)
    [path] = (tmp_path / FOLDER).iterdir()
    copy = path.read_bytes()
    third = UsageWorker(usage.client, tmp_path, usage.clock)
    caplog.set_level(logging.INFO)
    await asyncio.gather(other.flusher.orphaned.once(), third.flusher.orphaned.once())
    assert caplog.text.count("was taken over") == 1
    path.write_bytes(copy)
    await other.flusher.orphaned.once()
    assert await stored(usage) == 2
    assert spool_files(tmp_path) == []


async def test_a_spooled_batch_overtakes_no_refused_one(usage: UsageWorker, other: UsageWorker, tmp_path: Path) -> None:
    """Else the older would pass for a repetition when its record is mended."""
    await usage.client.hset(RECORD, "20:forecast:answered", "many")
    count(usage, "a", "b")
    await usage.flusher.flush()
    usage.counters.count("a", "projects", "answered")
    await usage.flusher.stop(seconds=0.05)
    await other.flusher.orphaned.once()
    assert "20:forecast:answered holds many" in (other.flusher.problem or "")
    assert spool_files(tmp_path) == ["json"]
    await usage.client.hdel(RECORD, "20:forecast:answered")
    await other.flusher.orphaned.once()
    assert (await stored(usage), await stored(usage, "b"), other.flusher.problem) == (2, 1, None)
    assert spool_files(tmp_path) == []


async def test_an_unwritable_spool_is_logged(
    usage: UsageWorker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / FOLDER).write_text("a file where the folder should be")
    usage.redis.away = True
    count(usage, "a", "a", "b")
    await usage.flusher.stop(seconds=0.05)
    assert "3 counts of 2 keys are lost" in caplog.text


async def test_a_long_take_over_delays_no_flush(
    usage: UsageWorker, other: UsageWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second is all that may be lost of what is counted now, whatever was left by others."""
    usage.redis.away = True
    count(usage)
    await usage.flusher.stop(seconds=0)
    monkeypatch.setattr(flusher, "FLUSH_SECONDS", 0.01)
    taking, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(_: Spooled) -> tuple[bool, str | None]:
        taking.set()
        await go_on.wait()
        return True, None

    monkeypatch.setattr(other.flusher.orphaned, "_store_spooled", slowly)
    other.flusher.start()
    await taking.wait()
    count(other, "b")
    await eventually(lambda: not other.counters.waiting())
    go_on.set()
    await other.flusher.stop()


async def test_counts_are_spooled_without_the_store(
    usage: UsageWorker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flusher, "FLUSH_SECONDS", 0.01)
    monkeypatch.setattr(flusher, "SPOOL_AFTER_SECONDS", 0.01)
    usage.redis.away = True
    usage.flusher.start()
    count(usage)
    await eventually(lambda: on_disk(tmp_path) == 1)
    count(usage)
    await eventually(lambda: on_disk(tmp_path) == 2)
    assert usage.counters.waits == 2
    usage.redis.away = False
    await eventually(lambda: spool_files(tmp_path) == ["lock"])
    assert (await stored(usage), usage.counters.waits) == (2, 0)
    await usage.flusher.stop()
    assert spool_files(tmp_path) == []


async def test_what_is_refused_is_spooled_and_nothing_else(usage: UsageWorker, tmp_path: Path) -> None:
    await usage.client.hset(RECORD, "20:forecast:answered", "many")
    count(usage, "a", "b")
    await usage.flusher.flush()
    count(usage, "a", "b")
    await usage.flusher.spool()
    assert on_disk(tmp_path) == 2
    await usage.flusher.flush()
    assert await stored(usage, "b") == 2
    await usage.client.hdel(RECORD, "20:forecast:answered")
    await usage.flusher.flush()
    await usage.flusher.flush()
    await usage.flusher.spool()
    assert (await stored(usage), spool_files(tmp_path)) == (2, ["lock"])


async def test_an_unwritable_spool_is_logged_once(
    usage: UsageWorker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / FOLDER).write_text("a file where the folder should be")
    await usage.client.set(RECORD, "x")
    count(usage)
    await usage.flusher.flush()
    for _ in range(3):
        await usage.flusher.spool()
    assert caplog.text.count("the spool cannot be written") == 1
    await usage.client.delete(RECORD)
    await usage.flusher.flush()
    assert await stored(usage) == 1


def on_disk(data: Path) -> int:
    files = [msgspec.json.decode(path.read_bytes(), type=Spooled) for path in (data / FOLDER).glob("*.json")]
    return sum(n for file in files for batches in file.keys.values() for batch in batches for *_, n in batch.cells)
