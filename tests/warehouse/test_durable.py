"""Files are there whole or not at all."""

from pathlib import Path

import pytest

from warehouse.durable import checksum, clear_aside, exclusive, replacing, sync_tree, write_atomically


def test_a_file_is_replaced_and_nothing_else_stays(tmp_path: Path) -> None:
    path = tmp_path / "current.json"
    write_atomically(path, b"one")
    write_atomically(path, b"two")
    assert {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()} == {"current.json": b"two"}


def test_a_reader_of_the_old_file_keeps_the_old_file(tmp_path: Path) -> None:
    """It is replaced, never overwritten."""
    path = tmp_path / "current.json"
    write_atomically(path, b"one")
    with path.open("rb") as reader:
        write_atomically(path, b"two, and longer")
        assert reader.read() == b"one"


def test_a_write_that_fails_leaves_the_old_file_and_nothing_aside(tmp_path: Path) -> None:
    """A folder in the way: the last step, the renaming, cannot be done."""
    path = tmp_path / "current.json"
    (path / "full").mkdir(parents=True)
    with pytest.raises(OSError, match="current"):
        write_atomically(path, b"two")
    assert [entry.name for entry in tmp_path.iterdir()] == ["current.json"]


def test_a_secret_is_never_readable_by_others(tmp_path: Path) -> None:
    write_atomically(tmp_path / "pepper", b"x", mode=0o600)
    assert (tmp_path / "pepper").stat().st_mode & 0o777 == 0o600


def test_leftovers_of_one_file_are_cleared_and_no_other(tmp_path: Path) -> None:
    keep = {"current.json", ".current.json.new", ".other.json.1.new"}
    for name in (*keep, ".current.json.4711.new"):
        (tmp_path / name).write_bytes(b"")
    clear_aside(tmp_path / "current.json")
    assert {path.name for path in tmp_path.iterdir()} == keep


def test_a_lock_is_held_by_one_and_free_again_afterwards(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with exclusive(lock) as first, exclusive(lock) as second:
        assert (first, second) == (True, False)
    with exclusive(lock) as again:
        assert again


def test_a_lock_is_free_after_its_holder_failed(tmp_path: Path) -> None:
    with pytest.raises(KeyError), exclusive(tmp_path / "lock"):
        raise KeyError
    with exclusive(tmp_path / "lock") as again:
        assert again


def test_a_checksum_is_that_of_every_byte(tmp_path: Path) -> None:
    """Also beyond the first block that is read."""
    path = tmp_path / "file"
    path.write_bytes(bytes(3 << 20))
    whole = checksum(path)
    for at in (0, 1 << 20, (3 << 20) - 1):
        data = bytearray(3 << 20)
        data[at] = 1
        path.write_bytes(data)
        assert checksum(path) != whole
    path.write_bytes(b"")
    assert checksum(path) == "cae66941d9efbd404e4d88758ea67670"


def test_a_tree_with_folders_and_empty_ones_is_flushed(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "file").write_bytes(b"x")
    sync_tree(tmp_path)
    assert (tmp_path / "a" / "file").read_bytes() == b"x"


def test_a_stream_that_is_left_by_an_error_changes_nothing(tmp_path: Path) -> None:
    """What was written until then is nowhere; without an error it replaces the file."""
    path = tmp_path / "usage.csv"
    path.write_bytes(b"old")
    with pytest.raises(TypeError), replacing(path) as stream:
        stream.writelines([b"half", "no bytes"])  # type: ignore[list-item]
    assert {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()} == {"usage.csv": b"old"}
    with replacing(path) as stream:
        stream.write(b"new")
        assert path.read_bytes() == b"old"
    assert {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()} == {"usage.csv": b"new"}
