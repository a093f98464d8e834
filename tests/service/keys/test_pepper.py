"""The pepper: configured, or created once and never lost unnoticed."""

import os
import stat
import threading
from pathlib import Path

import pytest

from config.settings import SettingsError
from service.keys import pepper
from service.keys.store_identity import SEEN


def test_a_configured_pepper_is_used_as_it_is_unless_it_is_short(tmp_path: Path) -> None:
    assert pepper.obtain("x" * 16, tmp_path) == b"x" * 16
    with pytest.raises(SettingsError, match="FORECAST_KEYS_PEPPER") as caught:
        pepper.obtain("quite-short", tmp_path)
    assert "quite-short" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_pepper_is_created_once_and_kept_private(tmp_path: Path) -> None:
    data = tmp_path / "data"
    first = pepper.obtain(None, data)
    assert len(first) == 64
    assert pepper.obtain(None, data) == first
    assert stat.S_IMODE((data / "pepper").stat().st_mode) == 0o600
    assert [path.name for path in data.iterdir()] == ["pepper"]


def test_a_data_folder_without_a_pepper_can_be_left_as_it_is(tmp_path: Path) -> None:
    data = tmp_path / "data"
    first, second = (pepper.obtain(None, data, create=False) for _ in range(2))
    assert first != second
    assert not data.exists()
    made = pepper.obtain(None, data)
    assert pepper.obtain(None, data, create=False) == made


def test_a_folder_that_may_not_be_searched_or_written_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="cannot read or create the pepper"):
        pepper.obtain(None, tmp_path / "file" / "data")

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "stat", refused)
    assert not pepper.is_lost(None, tmp_path)  # it is unknown whether it is lost
    with pytest.raises(SettingsError, match="cannot read or create the pepper"):
        pepper.obtain(None, tmp_path)


def test_a_lost_pepper_is_not_replaced_unless_there_are_no_keys(tmp_path: Path) -> None:
    assert not pepper.is_lost(None, tmp_path)
    (tmp_path / SEEN).touch()
    assert pepper.is_lost(None, tmp_path)
    assert not pepper.is_lost("x" * 16, tmp_path)
    assert pepper.obtain(None, tmp_path) != pepper.obtain(None, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [SEEN]
    made = pepper.obtain(None, tmp_path, from_scratch=True)
    assert pepper.obtain(None, tmp_path) == made
    assert not pepper.is_lost(None, tmp_path)


def test_the_second_caller_gets_the_first_pepper(tmp_path: Path) -> None:
    """However many begin at once: two peppers would void the keys of one of them."""
    found: list[bytes] = []
    start = threading.Barrier(8)

    def obtain() -> None:
        start.wait()
        found.append(pepper.obtain(None, tmp_path))

    threads = [threading.Thread(target=obtain) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_what_a_killed_process_left_behind_is_no_obstacle(tmp_path: Path) -> None:
    """In a container the next process has the same number."""
    (tmp_path / f".pepper.{os.getpid()}").write_text("")
    assert pepper.obtain(None, tmp_path)


def test_a_damaged_pepper_is_an_error_and_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "pepper").write_text("")
    with pytest.raises(SettingsError, match="restore it"):
        pepper.obtain(None, tmp_path)
    assert (tmp_path / "pepper").read_text() == ""


def test_a_fingerprint_distinguishes_peppers_and_reveals_none() -> None:
    one, other = pepper.fingerprint(b"one pepper of ours"), pepper.fingerprint(b"another pepper")
    assert one == pepper.fingerprint(b"one pepper of ours") != other
    assert "pepper" not in one
