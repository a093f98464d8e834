"""When the last drop was delivered, as the data folder tells it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from warehouse.releases.deliveries import last_delivery, note_delivery


def test_before_the_first_drop_there_is_none(tmp_path: Path) -> None:
    assert last_delivery(tmp_path) is None


def test_a_delivery_that_was_noted_is_the_last(tmp_path: Path) -> None:
    """Also one that brought what an older release has."""
    (tmp_path / "releases" / "20200101T000000Z-abc").mkdir(parents=True)
    before = datetime.now(UTC)
    note_delivery(tmp_path, "20200101T000000Z-abc")
    last = last_delivery(tmp_path)
    assert last is not None
    assert before <= last <= datetime.now(UTC)


@pytest.mark.parametrize("content", [None, b"", b"{", b'{"at":1}', b"\xff"])
def test_without_a_note_the_newest_release_tells(tmp_path: Path, content: bytes | None) -> None:
    """After a crash, on a full disk, or before an upgrade; whichever release is current."""
    for name in ("20261001T000000Z-abc", "20261005T123015Z-def", "20260901T000000Z-fed"):
        (tmp_path / "releases" / name).mkdir(parents=True)
    if content is not None:
        (tmp_path / "delivered.json").write_bytes(content)
    assert last_delivery(tmp_path) == datetime(2026, 10, 5, 12, 30, 15, tzinfo=UTC)


def test_a_release_that_is_newer_than_the_note_tells(tmp_path: Path) -> None:
    """The note could not be written."""
    note_delivery(tmp_path, "old")
    later = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    (tmp_path / "releases" / f"{later:%Y%m%dT%H%M%SZ}-abc").mkdir(parents=True)
    assert last_delivery(tmp_path) == later


def test_a_folder_that_is_named_like_a_release_of_no_day_tells_nothing(tmp_path: Path) -> None:
    (tmp_path / "releases" / "99999999T999999Z-abc").mkdir(parents=True)
    assert last_delivery(tmp_path) is None
