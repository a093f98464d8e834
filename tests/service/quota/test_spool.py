"""The spool: whole files, read by whoever comes; what cannot be used is kept aside."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from service.quota.batch import UsageBatch
from service.quota.spool import FOLDER, OLDEST, Spool, Spooled
from tests.support.usage import spool_files

KEYS: dict[str, tuple[UsageBatch, ...]] = {
    "a": (UsageBatch(3, ((20_777, "forecast", "answered", 5),)), UsageBatch(4, ((20_777, "forecast", "rejected", 1),)))
}

# Of a version that did not count by hour.
WITHOUT_HOURS = b'{"worker_id":"w","written_at":"%s","keys":{"a":[[1,[[20777,"forecast","answered",5]]]]}}'
NEGATIVE = (
    b'{"worker_id":"w","written_at":"2026-11-20T12:00:00Z","keys":{"a":[[1,[[20777,"forecast","answered",-1]]]]}}'
)


def waiting(spool: Spool) -> Iterator[tuple[Path, Spooled]]:
    for path in spool.files():
        if (claim := spool.claim(path)) is None:
            continue
        with claim:
            spooled = spool.read(path)
        if spooled is not None:
            yield path, spooled


def left(spool: Spool, worker_id: str) -> Path:
    path = spool.write(worker_id, KEYS)
    spool.leave(worker_id)
    return path


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path)


def test_what_is_written_is_read(spool: Spool) -> None:
    path = left(spool, "w")
    [(found, spooled)] = waiting(spool)
    assert (found, spooled.worker_id, spooled.keys) == (path, "w", KEYS)
    assert path.stat().st_mode & 0o077 == 0


def test_what_an_older_version_left_has_days_and_no_hours(spool: Spool) -> None:
    path = left(spool, "w")
    path.write_bytes(WITHOUT_HOURS % datetime.now(UTC).isoformat().encode())
    [(_, spooled)] = waiting(spool)
    assert spooled.keys == {"a": (UsageBatch(1, ((20_777, "forecast", "answered", 5),), ()),)}


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"worker_id": 1}', b"\xff", NEGATIVE])
def test_a_damaged_file_is_set_aside(spool: Spool, caplog: pytest.LogCaptureFixture, damage: bytes) -> None:
    path = left(spool, "w")
    path.write_bytes(damage)
    left(spool, "other")
    assert [spooled.worker_id for _, spooled in waiting(spool)] == ["other"]
    assert len(caplog.records) == 1
    assert [spooled.worker_id for _, spooled in waiting(spool)] == ["other"]
    assert len(caplog.records) == 1
    assert path.with_name("w.json.damaged").read_bytes() == damage


def test_a_file_that_is_too_old_is_set_aside(spool: Spool, tmp_path: Path) -> None:
    """The store may have forgotten what of it was added: counting twice would be worse than asking an operator."""
    left(spool, "fresh")
    old = Spooled("old", datetime.now(UTC) - OLDEST - timedelta(minutes=1), KEYS)
    (tmp_path / FOLDER / "old.json").write_bytes(msgspec.json.encode(old))
    assert [spooled.worker_id for _, spooled in waiting(spool)] == ["fresh"]
    assert (tmp_path / FOLDER / "old.json.too-old").exists()


def test_a_file_that_another_took_away_is_skipped(spool: Spool) -> None:
    first, _ = left(spool, "a"), left(spool, "b")
    found = waiting(spool)
    assert next(found)[0] == first
    (first.parent / "b.json").unlink()
    assert list(found) == []


def test_an_unreadable_file_is_reported_and_left(spool: Spool, caplog: pytest.LogCaptureFixture) -> None:
    path = left(spool, "w")
    path.unlink()
    path.mkdir()
    assert list(waiting(spool)) == []
    assert "cannot be read" in caplog.text
    assert path.exists()


def test_the_file_of_a_live_worker_is_not_taken_over(spool: Spool, tmp_path: Path) -> None:
    spool.write("w", KEYS)
    other = Spool(tmp_path)
    assert list(waiting(other)) == []
    spool.write("w", {"a": KEYS["a"][:1]})
    spool.leave("w")
    [(_, spooled)] = waiting(other)
    assert spooled.keys == {"a": KEYS["a"][:1]}


def test_a_file_is_taken_by_one_at_a_time(spool: Spool, tmp_path: Path) -> None:
    path = left(spool, "w")
    first = spool.claim(path)
    assert first is not None
    assert Spool(tmp_path).claim(path) is None
    first.close()
    assert [entry.name for entry in path.parent.iterdir()] == ["w.json"]


def test_a_lock_that_a_killed_worker_left_is_removed_in_the_end(spool: Spool, tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    dead, young = (tmp_path / FOLDER / name for name in (".dead.lock", ".young.lock"))
    dead.touch()
    young.touch()
    os.utime(dead, (0, 0))
    spool.write("w", KEYS)
    spool.clear("w")
    living = tmp_path / FOLDER / ".w.lock"
    os.utime(living, (0, 0))
    assert Spool(tmp_path).files() == []
    assert {path.name for path in (tmp_path / FOLDER).iterdir()} == {".young.lock", ".w.lock"}


def test_what_a_killed_worker_had_begun_to_write_goes_with_its_file(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    path = spool.write("w", {})
    spool.leave("w")
    (tmp_path / FOLDER / ".w.json.0123456789abcdef.new").write_bytes(b"half")
    claim = Spool(tmp_path).claim(path)
    assert claim is not None
    path.unlink()
    claim.close()
    assert spool_files(tmp_path) == []
