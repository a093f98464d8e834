"""The spool: whole files, read by whoever comes; what cannot be used is kept aside."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from service.quota.spool import FOLDER, OLDEST, Spool, Spooled
from service.quota.usage import Batch

KEYS: dict[str, tuple[Batch, ...]] = {
    "a": (Batch(3, ((20_777, "forecast", "answered", 5),)), Batch(4, ((20_777, "forecast", "rejected", 1),)))
}

NEGATIVE = (
    b'{"worker_id":"w","written_at":"2026-11-20T12:00:00Z","keys":{"a":[[1,[[20777,"forecast","answered",-1]]]]}}'
)


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path)


def test_what_is_written_is_read(spool: Spool) -> None:
    """With the worker's id and numbers, which make it safe to store twice."""
    path = spool.write("w", KEYS)
    [(found, spooled)] = spool.waiting()
    assert (found, spooled.worker_id, spooled.keys) == (path, "w", KEYS)
    assert path.stat().st_mode & 0o077 == 0


def test_a_data_folder_without_a_spool_is_empty(spool: Spool) -> None:
    """Most have none."""
    assert list(spool.waiting()) == []


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"worker_id": 1}', b"\xff", NEGATIVE])
def test_a_damaged_file_is_set_aside(spool: Spool, caplog: pytest.LogCaptureFixture, damage: bytes) -> None:
    """It is told once, stays for an operator, and stops no other."""
    path = spool.write("w", KEYS)
    path.write_bytes(damage)
    spool.write("other", KEYS)
    assert [spooled.worker_id for _, spooled in spool.waiting()] == ["other"]
    assert len(caplog.records) == 1
    assert [spooled.worker_id for _, spooled in spool.waiting()] == ["other"]
    assert len(caplog.records) == 1
    assert path.with_name("w.json.damaged").read_bytes() == damage


def test_a_file_that_is_too_old_is_set_aside(spool: Spool, tmp_path: Path) -> None:
    """The store may have forgotten what of it was added: counting twice would be worse than asking an operator."""
    spool.write("fresh", KEYS)
    old = Spooled("old", datetime.now(UTC) - OLDEST - timedelta(minutes=1), KEYS)
    (tmp_path / FOLDER / "old.json").write_bytes(msgspec.json.encode(old))
    assert [spooled.worker_id for _, spooled in spool.waiting()] == ["fresh"]
    assert (tmp_path / FOLDER / "old.json.too-old").exists()


def test_a_file_that_another_took_away_is_skipped(spool: Spool) -> None:
    """Between looking and reading."""
    first, _ = spool.write("a", KEYS), spool.write("b", KEYS)
    found = spool.waiting()
    assert next(found)[0] == first
    (first.parent / "b.json").unlink()
    assert list(found) == []


def test_a_file_that_cannot_be_read_is_told_and_left(spool: Spool, caplog: pytest.LogCaptureFixture) -> None:
    """Another instance may be able to."""
    path = spool.write("w", KEYS)
    path.unlink()
    path.mkdir()
    assert list(spool.waiting()) == []
    assert "cannot be read" in caplog.text
    assert path.exists()
