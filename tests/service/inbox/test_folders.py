"""The way of a drop through the inbox's folders."""

import math
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from service.inbox.folders import Claim, InboxFolder, move
from warehouse.schema.errors import InboxError

NOW = datetime(2026, 10, 5, 12, 30, 15, 250, tzinfo=UTC)
STAMP = "20261005T123015Z"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "inbox"
    made.mkdir()
    return made


@pytest.fixture
def inbox(folder: Path) -> InboxFolder:
    made = InboxFolder(folder, marker="_SUCCESS", quiet=30, now=lambda: NOW)
    made.prepare()
    return made


def put(folder: Path, name: str = "2026-10") -> Path:
    """A complete drop."""
    (folder / name).mkdir()
    (folder / name / "part.parquet").write_bytes(b"PAR1")
    (folder / name / "_SUCCESS").touch()
    return folder / name


def claimed(inbox: InboxFolder, name: str = "2026-10") -> Claim:
    claim = inbox.claim(name)
    assert claim is not None
    return claim


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path.name != ".lock"}


def test_the_contents_of_the_inbox_are_distinguished(inbox: InboxFolder, folder: Path, tmp_path: Path) -> None:
    """Complete drops, arriving ones, what is none and why; hidden names and our own folders are nobody's business."""
    put(folder)
    (folder / "arriving").mkdir()
    (folder / "one.PARQUET").write_bytes(b"PAR1")
    for name in ("_staging", ".hidden"):
        put(folder, name)
    (folder / "notes.txt").touch()
    (folder / "report.json").touch()
    (folder / "link.parquet").symlink_to(tmp_path)
    (folder / "new\nline.parquet").touch()
    (folder / os.fsdecode(b"\xff.parquet")).touch()
    os.mkfifo(folder / "pipe.parquet")
    look = inbox.look()
    assert look.complete == ("2026-10",)
    assert set(look.arriving) == {"arriving", "one.PARQUET"}
    assert look.foreign == {
        "notes.txt": "it is neither a folder nor a .parquet file",
        "pipe.parquet": "it is neither a folder nor a .parquet file",
        "report.json": "its name is that of a report",
        "link.parquet": "it is a link: copy its target instead",
        "new\nline.parquet": "its name is not text",
        "\ufffd.parquet": "its name is not text",
    }


def test_a_lone_file_is_reported_where_only_a_marker_completes_drops(folder: Path) -> None:
    """It can hold none, and would wait for ever."""
    inbox = InboxFolder(folder, marker="_SUCCESS", quiet=math.inf)
    inbox.prepare()
    put(folder)
    (folder / "one.parquet").write_bytes(b"PAR1")
    look = inbox.look()
    assert (look.complete, look.arriving) == (("2026-10",), ())
    assert look.foreign == {"one.parquet": "it is one file, which cannot hold a marker: put it into a folder"}


def test_a_claimed_drop_is_out_of_everybody_s_hands_and_whole(inbox: InboxFolder, folder: Path) -> None:
    """It keeps its name, so that its files are known by it, and another of that name may come."""
    put(folder)
    claim = claimed(inbox)
    assert claim.name == "2026-10"
    assert {path.name for path in claim.path.iterdir()} == {"part.parquet", "_SUCCESS"}
    assert inbox.look().complete == ()
    put(folder)
    assert inbox.look().complete == ("2026-10",)


def test_a_drop_that_has_gone_cannot_be_claimed(inbox: InboxFolder) -> None:
    """Its owner took it back; nothing stays behind."""
    assert inbox.claim("2026-10") is None
    assert inbox.claims() == []


def test_a_claimed_drop_is_found_by_the_next_watcher(inbox: InboxFolder, folder: Path) -> None:
    """Also beside what a watcher left that died just before or while it settled it."""
    assert inbox.claims() == []
    put(folder)
    claim = claimed(inbox)
    (folder / ".claimed" / "20200101T000000.000000Z").mkdir()
    (claim.path.parent / "report.json").write_text("half")
    (claim.path.parent / ".report.txt.1.new").write_text("half")
    assert inbox.claims() == [claim]
    move(claim.path, inbox.destination(claim, "quarantine"), {"report.json": b"{}", "report.txt": b"well"})
    assert inbox.claims() == []
    assert (folder / "quarantine" / f"2026-10-{STAMP}" / "report.json").read_bytes() == b"{}"
    assert [path.name for path in (folder / ".claimed").iterdir()] == [".lock"] * (folder / ".claimed/.lock").exists()


@pytest.mark.parametrize("place", ["published", "quarantine"])
def test_a_settled_drop_lies_beside_its_reports(inbox: InboxFolder, folder: Path, place: str) -> None:
    put(folder)
    claim = claimed(inbox)
    target = inbox.destination(claim, place)  # type: ignore[arg-type]  # one of the two
    move(claim.path, target, {"report.json": b"{}", "report.txt": b"all\n"})
    home = f"{place}/2026-10-{STAMP}"
    assert files(folder) == {
        f"{home}/{name}" for name in ("2026-10/part.parquet", "2026-10/_SUCCESS", "report.json", "report.txt")
    }


def test_a_single_file_goes_the_same_way(inbox: InboxFolder, folder: Path) -> None:
    (folder / "zip_housing.parquet").write_bytes(b"PAR1")
    claim = claimed(inbox, "zip_housing.parquet")
    move(claim.path, inbox.destination(claim, "published"), {})
    assert files(folder) == {f"published/zip_housing.parquet-{STAMP}/zip_housing.parquet"}


def test_drops_of_one_name_and_second_do_not_replace_one_another(folder: Path) -> None:
    times = iter(NOW.replace(microsecond=number) for number in range(100))
    latest = [NOW]

    def now() -> datetime:
        latest[0] = next(times)
        return latest[0]

    inbox = InboxFolder(folder, marker="_SUCCESS", quiet=30, now=now)
    inbox.prepare()
    for _ in range(3):
        put(folder)
        claim = claimed(inbox)
        move(claim.path, inbox.destination(claim, "quarantine"), {"report.txt": b"no"})
    names = {f"2026-10-{STAMP}{suffix}" for suffix in ("", "-2", "-3")}
    assert {path.name for path in (folder / "quarantine").iterdir()} == names
    assert len(files(folder)) == 9


def test_the_longest_name_has_a_place_too(inbox: InboxFolder, folder: Path) -> None:
    """A name of 255 bytes leaves no room for the time, and is cut between characters."""
    name = "é" * 127
    put(folder, name)
    claim = claimed(inbox, name)
    target = inbox.destination(claim, "quarantine")
    move(claim.path, target, {"report.txt": b"no"})
    assert target.name == f"{'é' * 100}-{STAMP}"
    assert (target / name / "part.parquet").exists()


def test_one_watcher_is_alone(inbox: InboxFolder, folder: Path) -> None:
    """The lock belongs to the inbox, whoever watches it."""
    other = InboxFolder(folder, marker="_DONE", quiet=1)
    with inbox.lock() as first, other.lock() as second:
        assert (first, second) == (True, False)
    with other.lock() as held:
        assert held


def test_an_inbox_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    """It may be what was not mounted: drops must not go live from below it."""
    with pytest.raises(InboxError, match="does not exist"):
        InboxFolder(tmp_path / "missing", marker="_SUCCESS", quiet=30).prepare()
    assert list(tmp_path.iterdir()) == []


def test_an_inbox_that_cannot_be_written_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its permissions, because the folders in it cannot be made, or because it is a file."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda *_: False)
        with pytest.raises(InboxError, match="cannot be read and written by this user"):
            InboxFolder(folder, marker="_SUCCESS", quiet=30).prepare()
    (folder / "quarantine").touch()
    for path, says in ((folder, "quarantine: File exists"), (folder / "quarantine", "quarantine is not a folder")):
        with pytest.raises(InboxError, match=says):
            InboxFolder(path, marker="_SUCCESS", quiet=30).prepare()


def test_an_inbox_that_vanished_is_an_error_at_every_step(inbox: InboxFolder, folder: Path) -> None:
    """And never taken for an empty one."""
    put(folder)
    claim = claimed(inbox)
    folder.rename(folder.with_name("elsewhere"))
    for step in (inbox.look, inbox.claims, lambda: move(claim.path, folder / "published" / "x", {"r": b""})):
        with pytest.raises(InboxError, match="inbox"):
            step()


def test_a_drop_that_this_user_may_not_move_is_named(
    inbox: InboxFolder, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays where it is, and the error says what to change."""
    put(folder)

    def forbidden(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", forbidden)
        with pytest.raises(InboxError, match="2026-10 cannot be claimed: Permission denied; the watcher's user must"):
            inbox.claim("2026-10")
    assert inbox.claims() == []
    assert inbox.look().complete == ("2026-10",)
