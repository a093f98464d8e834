"""What is held in an inbox, and how a watcher keeps track of it."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from service.inbox.decisions import deciding, find_held, list_held, read_held_times
from service.inbox.status import read_status
from tests.support.inbox import BAD, GOOD, HELD, Site
from warehouse.schema.errors import InboxError


def test_a_drop_to_approve_is_held_with_its_reports(site: Site) -> None:
    site.hold("2026-10")
    (home,) = (site.inbox / "held").iterdir()
    assert {path.name for path in home.iterdir()} == {"2026-10", "report.json", "report.txt"}
    assert (home / "2026-10" / "part.parquet").exists()
    assert "to decide: `forecast extracts approve`" in (home / "report.txt").read_text()
    assert site.kinds() == ["publishing", "held"]
    assert str(home / "report.txt") in site.events[-1].message
    status = read_status(site.data)
    assert (status.published, status.refused, status.held, status.waiting) == (0, 0, 1, 0)
    (held,) = list_held(site.inbox)
    assert (held.id, held.name, held.rules()) == (home.name, "2026-10", ["total-drift"])
    assert held.delivered <= datetime.now(UTC)
    assert held.report is not None
    assert (held.report.result, held.report.data_folder, held.report.tables) == (
        "held",
        str(site.data),
        {"population": "aa"},
    )


def test_newer_drops_go_live_while_one_is_held(site: Site) -> None:
    site.hold("2026-10")
    site.put("2026-11")
    assert site.watcher().once()
    assert (site.placed("held"), site.placed("published")) == (["2026-10"], ["2026-11"])


def test_a_drop_with_the_contents_of_a_held_one_is_refused(site: Site) -> None:
    """A person decides once. The report names the one that is held."""
    site.hold("2026-10")
    site.put("2026-10")
    site.answers = [HELD]
    assert not site.watcher().once()
    assert (site.placed("held"), site.placed("quarantine")) == (["2026-10"], ["2026-10"])
    (report,) = site.inbox.glob("quarantine/*/report.json")
    (finding,) = msgspec.json.decode(report.read_bytes())["findings"]
    assert finding["rule"] == "already-held"
    assert "same contents as 2026-10, which has been held since" in finding["message"]


def test_a_drop_with_other_contents_is_held_beside_another_of_its_name(site: Site) -> None:
    other = msgspec.structs.replace(HELD, outcome=msgspec.structs.replace(HELD.outcome, tables={"population": "bb"}))
    site.hold("2026-10")
    site.hold("2026-10", other)
    held = list_held(site.inbox)
    assert [one.name for one in held] == ["2026-10", "2026-10"]
    assert len({one.id for one in held}) == 2
    assert read_status(site.data).held == 2


def test_drops_that_bring_no_table_are_not_the_same(site: Site) -> None:
    """Nothing is known of their contents."""
    empty = msgspec.structs.replace(HELD, outcome=msgspec.structs.replace(HELD.outcome, tables={}))
    site.hold("one", empty)
    site.hold("two", empty)
    assert site.placed("held") == ["one", "two"]


def test_a_held_drop_that_is_taken_away_is_reported(site: Site) -> None:
    """It is no secret, and no longer counted."""
    site.hold("2026-10")
    site.events.clear()
    watcher = site.watcher()
    watcher.once()
    (home,) = (site.inbox / "held").iterdir()
    (home / "2026-10").rename(site.inbox / "_kept")
    watcher.once()
    assert site.kinds() == ["gone"]
    assert "removed from held/" in site.events[0].message
    assert read_status(site.data).held == 0


def lying(inbox: Path, folder: str, drop: str = "2026-10", report: bytes | None = None) -> Path:
    home = inbox / "held" / folder
    (home / drop).mkdir(parents=True)
    if report is not None:
        (home / "report.json").write_bytes(report)
    return home


def test_before_the_first_watcher_nothing_is_held(tmp_path: Path) -> None:
    assert list_held(tmp_path) == []
    with pytest.raises(InboxError, match="no drop 2026-10 is held"):
        find_held(tmp_path, "2026-10")


def test_an_inbox_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InboxError, match="cannot be used"):
        list_held(tmp_path / "missing")


def test_what_is_no_held_drop_is_passed_over(tmp_path: Path) -> None:
    """Locks, files, folders that somebody emptied."""
    lying(tmp_path, "2026-10-20261005T123015Z")
    (tmp_path / "held" / ".lock").touch()
    (tmp_path / "held" / "notes.txt").touch()
    (tmp_path / "held" / "empty-20261005T123015Z").mkdir()
    (tmp_path / "held" / "empty-20261005T123015Z" / "report.json").touch()
    assert list(read_held_times(tmp_path)) == ["2026-10-20261005T123015Z"]


@pytest.mark.parametrize("beside", ["NOTE.txt", "0.parquet", "zzz"])
def test_a_file_beside_a_held_drop_does_not_hide_it(site: Site, beside: str) -> None:
    """Somebody's note, or a page written with --html; its report knows the drop's name."""
    site.hold("2026-10")
    (home,) = (site.inbox / "held").iterdir()
    (home / beside).touch()
    assert find_held(site.inbox, "2026-10").path == home / "2026-10"
    assert list(read_held_times(site.inbox)) == [home.name]
    (home / "2026-10").rename(site.inbox / "_kept")
    assert read_held_times(site.inbox) == {}


@pytest.mark.parametrize("name", ["../2026-10", "/", "", "report.json", ".lock"])
def test_a_report_that_names_no_drop_beside_it_leads_nowhere(tmp_path: Path, name: str) -> None:
    home = lying(tmp_path, "2026-10-20261005T123015Z", report=msgspec.json.encode({"drop": name}))
    (home / ".lock").touch()
    assert list_held(tmp_path) == []


@pytest.mark.parametrize("folder", ["2026-10-20261005T123015Z", "2026-10-20261005T123015Z-2", "-20261005T123015Z"])
def test_a_drop_is_held_since_the_time_in_its_folder_s_name(tmp_path: Path, folder: str) -> None:
    lying(tmp_path, folder)
    assert read_held_times(tmp_path) == {folder: datetime(2026, 10, 5, 12, 30, 15, tzinfo=UTC)}


@pytest.mark.parametrize("folder", ["2026-10", "2026-10-99999999T999999Z"])
def test_a_folder_named_by_hand_is_held_since_it_changed(tmp_path: Path, folder: str) -> None:
    before = datetime.now(UTC).timestamp() - 5
    lying(tmp_path, folder)
    assert before < read_held_times(tmp_path)[folder].timestamp() < before + 60


@pytest.mark.parametrize("report", [None, b"", b"{", b'{"drop":1}', b"\xff"])
def test_a_report_that_is_lost_or_damaged_leaves_the_drop_held(tmp_path: Path, report: bytes | None) -> None:
    lying(tmp_path, "2026-10-20261005T123015Z", report=report)
    (held,) = list_held(tmp_path)
    assert (held.report, held.rules()) == (None, [])
    assert held.delivered == held.since


@pytest.mark.parametrize("name", ["-rf", "with space", "[red]x", "é", "a'b\"c", "--", "20261005T123015Z"])
def test_a_drop_is_found_by_name_and_by_id(site: Site, name: str) -> None:
    site.hold(name)
    (held,) = list_held(site.inbox)
    assert find_held(site.inbox, name) == find_held(site.inbox, held.id) == held


@pytest.mark.parametrize("name", ["", ".", "..", "../quarantine", "/", "held", "a\0b", "\udcff", ".lock"])
def test_a_name_that_no_held_drop_has_finds_nothing(site: Site, name: str) -> None:
    site.hold("2026-10")
    with pytest.raises(InboxError, match=r"no drop .* is held in"):
        find_held(site.inbox, name)


def test_the_id_distinguishes_two_drops_of_one_name(tmp_path: Path) -> None:
    lying(tmp_path, "2026-10-20261005T123015Z")
    lying(tmp_path, "2026-10-20261006T123015Z")
    with pytest.raises(InboxError, match="use one of 2026-10-20261005T123015Z, 2026-10-20261006T123015Z"):
        find_held(tmp_path, "2026-10")
    assert find_held(tmp_path, "2026-10-20261006T123015Z").since.day == 6


def test_a_watcher_goes_on_while_a_decision_is_made(site: Site) -> None:
    site.hold("2026-10")
    with deciding(site.inbox):
        for name in ("2026-11", "bad"):
            site.put(name)
        site.answers = [GOOD, BAD]
        site.watcher().once()
    assert (site.placed("published"), site.placed("quarantine")) == (["2026-11"], ["bad"])
