"""Files are there whole or not at all."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from warehouse.files import atomic
from warehouse.files.atomic import (
    checksum,
    clear_aside,
    create,
    exclusive,
    keep_spare,
    replace_from_spare,
    replacing,
    sync_tree,
    write_atomically,
)


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


def test_a_write_into_no_folder_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "no" / "current.json"
    with pytest.raises(FileNotFoundError) as failed:
        write_atomically(path, b"one")
    assert failed.value.filename == str(path)


def test_a_file_is_replaced_where_no_new_file_can_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a full disk, in blocks that were set aside: once, and again when there was room in between."""
    path = tmp_path / "current.json"
    replace_from_spare(path, b"one, the longest")
    opened = os.open

    def full(name: Path, flags: int, *more: int) -> int:
        if flags & os.O_CREAT and not os.path.lexists(name):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return opened(name, flags, *more)

    for text in (b"two", b"three"):
        with monkeypatch.context() as patch:
            patch.setattr(os, "open", full)
            replace_from_spare(path, text)
            assert path.read_bytes() == text
            with pytest.raises(OSError, match="No space left"):
                replace_from_spare(path, b"without any block")
            assert path.read_bytes() == text
        keep_spare(path)


@pytest.mark.parametrize("what", ["half", "link"])
def test_what_lies_in_the_place_of_the_spare_is_replaced(tmp_path: Path, what: str) -> None:
    """A crash can leave half of it; a link is never written through."""
    path, other = tmp_path / "current.json", tmp_path / "other"
    replace_from_spare(path, b"one")
    other.write_bytes(b"untouched")
    (spare,) = tmp_path.glob(".*")
    spare.unlink()
    if what == "half":
        spare.write_bytes(b"x")
    else:
        spare.symlink_to(other)
    keep_spare(path)
    assert spare.stat(follow_symlinks=False).st_size == 4096
    replace_from_spare(path, b"two")
    assert (path.read_bytes(), other.read_bytes()) == (b"two", b"untouched")


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


def test_a_link_planted_under_a_guessed_name_is_not_written_through(tmp_path: Path) -> None:
    """Anybody may make a link in /tmp; the process id is known to all."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    path = tmp_path / "keys.jsonl"
    planted = tmp_path / f".{path.name}.{os.getpid()}.new"
    planted.symlink_to(victim)
    write_atomically(path, b"secret", mode=0o600)
    assert (victim.read_bytes(), path.read_bytes(), planted.is_symlink()) == (b"mine", b"secret", True)


@pytest.mark.parametrize("plant", [Path.symlink_to, Path.hardlink_to])
def test_whatever_has_the_new_files_name_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Callable[[Path, Path], None]
) -> None:
    """Also if it was guessed after all: nothing is written, and nothing of others is removed."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    monkeypatch.setattr(atomic, "token_hex", lambda _: "guessed")
    planted = tmp_path / ".current.json.guessed.new"
    plant(planted, victim)
    with pytest.raises(FileExistsError):
        write_atomically(tmp_path / "current.json", b"secret")
    assert (victim.read_bytes(), planted.exists()) == (b"mine", True)


def test_a_file_is_private_from_its_first_moment(tmp_path: Path) -> None:
    """Not made so afterwards."""
    with replacing(tmp_path / "keys.jsonl", mode=0o600) as stream:
        assert stat.S_IMODE(os.fstat(stream.fileno()).st_mode) == 0o600


def test_a_link_is_replaced_and_its_target_stays(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    path = tmp_path / "usage.csv"
    path.symlink_to(victim)
    write_atomically(path, b"new")
    assert (victim.read_bytes(), path.read_bytes(), path.is_symlink()) == (b"mine", b"new", False)


def test_a_device_or_pipe_is_not_replaced(tmp_path: Path) -> None:
    """``--out /dev/stdout`` by root would replace it for all."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="not a regular file"):
        write_atomically(pipe, b"x")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_file_is_created_once(tmp_path: Path) -> None:
    """Private, and nothing else stays."""
    path = tmp_path / "pepper"
    assert (create(path, b"first", mode=0o600), create(path, b"second", mode=0o600)) == (True, False)
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"first", 0o600)
    assert list(tmp_path.iterdir()) == [path]


def test_a_lock_is_not_made_through_a_link(tmp_path: Path) -> None:
    lock, elsewhere = tmp_path / "lock", tmp_path / "elsewhere"
    lock.symlink_to(elsewhere)
    with pytest.raises(OSError, match="lock"), exclusive(lock):
        pass
    assert not elsewhere.exists()
