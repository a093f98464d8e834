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
    note_delivery(tmp_path)
    last = last_delivery(tmp_path)
    assert last is not None
    assert before <= last <= datetime.now(UTC)


FUTURE, NO_ZONE = (b'{"at":"%s","release":"x"}' % at for at in (b"2999-01-01T00:00:00Z", b"2026-10-06T00:00:00"))


@pytest.mark.parametrize("content", [None, b"", b"{", b'{"at":1}', b"\xff", NO_ZONE, FUTURE])
def test_without_a_note_the_newest_release_counts(tmp_path: Path, content: bytes | None) -> None:
    """After a crash, on a full disk, or before an upgrade; whichever is current. Clocks may have been wrong."""
    for name in ("20261001T000000Z-abc", "20261005T123015Z-def", "20260901T000000Z-fed", "29990101T000000Z-abc"):
        (tmp_path / "releases" / name).mkdir(parents=True)
    if content is not None:
        (tmp_path / "delivered.json").write_bytes(content)
    assert last_delivery(tmp_path) == datetime(2026, 10, 5, 12, 30, 15, tzinfo=UTC)


def test_a_release_newer_than_the_note_counts(tmp_path: Path) -> None:
    """The note could not be written. Another host's clock may be ahead, so that a time lies in the near future."""
    note_delivery(tmp_path)
    later = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=1)
    (tmp_path / "releases" / f"{later:%Y%m%dT%H%M%SZ}-abc").mkdir(parents=True)
    assert last_delivery(tmp_path) == later


def test_a_folder_named_like_a_release_of_no_day_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "releases" / "99999999T999999Z-abc").mkdir(parents=True)
    assert last_delivery(tmp_path) is None
    (tmp_path / "releases" / "20261005T123015Z-abc").mkdir(parents=True)
    assert last_delivery(tmp_path) == datetime(2026, 10, 5, 12, 30, 15, tzinfo=UTC)


@pytest.mark.parametrize(("content", "what"), [(FUTURE, "in the future"), (NO_ZONE, "cannot be read")])
def test_an_impossible_note_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes, what: str
) -> None:
    """Every scrape of the metrics reads it."""
    (tmp_path / "delivered.json").write_bytes(content)
    assert [last_delivery(tmp_path) for _ in range(3)] == [None] * 3
    (record,) = caplog.records
    assert f"{tmp_path}/delivered.json" in record.getMessage()
    assert what in record.getMessage()
