"""What a watcher does with the drops of an inbox; publishing itself is a double here."""

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from config.settings import Settings
from service.inbox import drops
from service.inbox.drops import Stopped
from service.inbox.folders import Claim, InboxFolder, move
from service.inbox.report import DropReport
from service.inbox.status import StatusFile, read_fresh_status, read_status
from service.publishing.publisher import Published
from tests.support.inbox import BAD, BUSY, CURRENT, FULL, GOOD, Site, stop
from warehouse.publishing.outcome import PublishOptions
from warehouse.rules.all_rules import make_finding
from warehouse.schema.errors import BusyError, CatalogError, DropError, InboxError, WarehouseError
from warehouse.schema.findings import make_report
from warehouse.schema.progress import ProgressCallback


def test_complete_drops_are_published_and_others_wait(site: Site) -> None:
    """Each is moved away with its report; what arrives stays."""
    site.put("2026-09")
    site.put("arriving", complete=False)
    assert site.watcher().once()
    assert site.handed == ["2026-09"]
    (home,) = (site.inbox / "published").iterdir()
    assert {path.name for path in home.iterdir()} == {"2026-09", "report.json", "report.txt"}
    assert (site.inbox / "arriving" / "part.parquet").exists()
    assert site.kinds() == ["arriving", "publishing", "published"]
    status = read_status(site.data)
    assert (status.published, status.refused, status.waiting) == (1, 0, 1)


def test_what_cannot_be_a_drop_is_counted_while_it_is_there(site: Site) -> None:
    """Its sender waits for it to be published."""
    (site.inbox / "drop.zip").write_bytes(b"PK")
    (site.inbox / "linked").symlink_to(site.data)
    site.watcher().once()
    assert (read_status(site.data).ignored, read_status(site.data).waiting) == (2, 0)
    assert read_fresh_status(site.data).ignored == 0  # nobody watches any more
    (site.inbox / "drop.zip").unlink()
    site.watcher().once()
    assert read_status(site.data).ignored == 1


def test_where_only_the_marker_completes_a_drop_its_place_is_named(site: Site) -> None:
    """A marker in a folder of the drop completes nothing, however long it lies there."""
    site.quiet = math.inf
    drop = site.put("2026-09", complete=False)
    (drop / "year=2026").mkdir()
    (drop / "year=2026" / "_SUCCESS").touch()
    assert site.watcher().once()
    (event,) = site.events
    assert event.message == f"2026-09 is arriving: it is complete once {drop}/_SUCCESS exists"


def test_a_refused_drop_is_quarantined_with_its_report(site: Site) -> None:
    """For people and for programs; the next drop is published all the same, and `once` says that one was refused."""
    site.put("bad")
    site.answers = [BAD]
    assert not site.watcher().once()
    (home,) = (site.inbox / "quarantine").iterdir()
    assert (home / "bad" / "part.parquet").exists()
    assert "Refused: 1 error; " in (home / "report.txt").read_text()
    said = msgspec.json.decode((home / "report.json").read_bytes(), type=DropReport)
    assert (said.drop, said.result, [finding.rule for finding in said.findings]) == (
        "bad",
        "refused",
        ["truncated-file"],
    )
    assert site.events[-1].place == str(home / "bad")
    assert site.events[-1].report == str(home / "report.txt")
    status = read_status(site.data)
    assert (status.refused, status.last_refusal is not None, status.waiting) == (1, True, 0)


def test_a_drop_without_any_parquet_file_is_refused(site: Site) -> None:
    """Its owner learns of it, by the drop's own name."""
    site.put("2026-10")
    site.answers = [DropError(f"no Parquet file in {site.inbox}/.claimed")]
    assert not site.watcher().once()
    assert site.placed("quarantine") == ["2026-10"]


def test_a_drop_that_brings_nothing_new_counts_as_published(site: Site) -> None:
    """So it is when a watcher died between switching and moving the drop."""
    site.put("again")
    site.answers = [CURRENT]
    assert site.watcher().once()
    assert site.kinds()[-1] == "already_current"
    assert (site.placed("published"), read_status(site.data).published) == (["again"], 1)


def test_a_drop_that_brings_nothing_new_has_no_error(site: Site) -> None:
    """What would hold it, such as a required table that it lacks, is a warning: nothing is left to decide."""
    report = make_report([make_finding("required-table", "the drop lacks housing")])
    site.put("again")
    site.answers = [Published(outcome=msgspec.structs.replace(CURRENT.outcome, report=report))]
    assert site.watcher().once()
    assert site.events[-1].message.endswith("; 1 warning")
    (text,) = site.inbox.glob("published/*/report.txt")
    assert "Already current, with warnings: 1 warning." in text.read_text()


def test_while_another_publishes_a_drop_waits(site: Site) -> None:
    """It is neither refused nor a problem, said once, and tried again before any newer one."""
    site.put("first")
    site.answers = [BUSY, BUSY, BUSY]
    site.on_sleep = lambda number: None
    site.watch(sleeps=5)
    assert site.handed == ["first"] * 4
    assert site.kinds() == ["watching", "publishing", "busy", "published"]
    assert site.problems == []
    assert read_status(site.data).refused == 0


def test_once_reports_that_another_publishes(site: Site) -> None:
    """The drop stays claimed, and the next run publishes it."""
    site.put("first")
    site.answers = [BUSY]
    with pytest.raises(BusyError):
        site.watcher().once()
    assert site.watcher().once()
    assert site.placed("published") == ["first"]


def test_a_full_disk_is_tried_again_later_and_later(site: Site) -> None:
    """Loudly, as a problem, in the order of the drops; it heals by itself."""
    site.put("first")
    site.answers = [FULL] * 8
    site.watch(sleeps=367)
    assert [after - before for before, after in pairwise(site.handed_at)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert site.handed == ["first"] * 9
    assert site.problems == [f"first: {FULL}", None]
    assert site.kinds().count("failed") == 8
    assert (site.placed("published"), site.placed("quarantine")) == (["first"], [])


def test_a_defect_of_ours_refuses_no_drop(site: Site) -> None:
    """Whatever happens in publishing, the drop is kept and tried again."""
    site.put("first")
    site.answers = [RuntimeError("a defect")]
    site.watch(sleeps=3)
    assert site.problems == ["first: RuntimeError: a defect", None]
    assert site.placed("published") == ["first"]


def test_a_newer_drop_never_overtakes_a_claimed_one(site: Site) -> None:
    """Else the older one would replace it."""
    site.put("older")
    site.answers = [FULL]
    with pytest.raises(CatalogError):
        site.watcher().once()
    site.put("newer")
    assert site.watcher().once()
    assert site.handed == ["older", "older", "newer"]


def test_a_drop_that_goes_on_failing_is_overtaken_and_set_aside(site: Site) -> None:
    """It alone fails: it is tried again right before each newer drop, and must not replace what went live meanwhile."""
    site.put("broken")
    site.failing["broken"] = CatalogError("only this one")

    def at(number: int) -> None:
        if number == 7:  # while it waits for its fourth try
            assert len(site.handed) == 3
            status = read_fresh_status(site.data)
            assert [(one.name, one.tries, one.problem) for one in status.failing] == [("broken", 3, "only this one")]
            site.put("newer")
        if number == 9:
            stop()

    site.on_sleep = at
    with pytest.raises(Stopped):
        site.watcher().watch()
    assert site.handed == ["broken"] * 4 + ["newer"]
    assert (site.placed("published"), site.placed("quarantine")) == (["newer"], ["broken"])
    (report,) = site.inbox.glob("quarantine/*/report.json")
    (finding,) = msgspec.json.decode(report.read_bytes(), type=DropReport).findings
    assert (finding.rule, "only this one" in finding.message, "newer" in finding.message) == ("overtaken", True, True)
    assert site.problems == ["broken: only this one", None]
    status = read_status(site.data)
    assert (status.published, status.refused, status.failing) == (1, 1, ())


def test_what_fails_every_drop_keeps_their_order(site: Site) -> None:
    """A disk that is full for an hour: none overtakes another, and when there is room they go live oldest first."""
    site.put("older")
    site.failing = {"older": FULL, "newer": FULL}

    def at(number: int) -> None:
        if number == 7:
            site.put("newer")
        if number == 100:
            assert site.placed("quarantine") == []
            site.failing.clear()
        if number == 500:
            stop()

    site.on_sleep = at
    with pytest.raises(Stopped):
        site.watcher().watch()
    assert site.handed[-2:] == ["older", "newer"]
    assert (site.placed("published"), site.placed("quarantine")) == (["newer", "older"], [])
    assert site.problems[-1] is None


def test_once_lets_others_by_a_drop_that_failed_in_earlier_runs(site: Site) -> None:
    """A timer's runs are told from each other by nothing but the status file."""
    site.put("broken")
    site.failing["broken"] = CatalogError("only this one")
    for _ in range(2):
        with pytest.raises(CatalogError, match="only this one"):
            site.watcher().once()
        (site.inbox / "newer").exists() or site.put("newer")
    assert not site.watcher().once()
    assert (site.placed("published"), site.placed("quarantine")) == (["newer"], ["broken"])


def test_a_drop_that_cannot_be_taken_leaves_others_their_way(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """It belongs to another user: reported, and tried again."""
    site.put("theirs")
    site.put("ours")
    claim = InboxFolder.claim

    def refused(inbox: InboxFolder, name: str) -> Claim | None:
        if name == "theirs":
            raise InboxError("theirs cannot be claimed")
        return claim(inbox, name)

    monkeypatch.setattr(InboxFolder, "claim", refused)
    site.watch(sleeps=2)
    assert (site.handed, site.placed("published"), site.problems) == (["ours"], ["ours"], ["theirs cannot be claimed"])
    assert (site.inbox / "theirs").exists()


def test_a_drop_that_cannot_be_moved_to_its_place_leaves_others_their_way(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quarantine that cannot be written is no reason to publish nothing."""
    site.put("bad")

    def stuck(drop: Path, destination: Path, reports: dict[str, bytes]) -> None:
        if destination.parent.name == "quarantine":
            raise InboxError("cannot be moved")
        move(drop, destination, reports)

    monkeypatch.setattr(drops, "move", stuck)
    site.answers = [BAD] * 3

    def at(number: int) -> None:
        if number == 7:
            site.answers = [BAD, GOOD]
            site.put("good")
        if number == 9:
            stop()

    site.on_sleep = at
    with pytest.raises(Stopped):
        site.watcher().watch()
    assert site.placed("published") == ["good"]
    assert read_status(site.data).published == 1


def test_a_stopped_watcher_s_drop_is_published_by_the_next(site: Site) -> None:
    """Stopping goes through everything, and nothing is lost by it."""
    site.put("2026-10")
    site.answers = [Stopped()]
    with pytest.raises(Stopped):
        site.watcher().watch()
    assert not (site.inbox / "2026-10").exists()
    assert site.watcher().once()
    assert (site.handed, site.placed("published")) == (["2026-10", "2026-10"], ["2026-10"])


def test_a_drop_that_is_counted_and_not_yet_moved_is_not_counted_twice(site: Site, tmp_path: Path) -> None:
    """A crash between the two: published again, moved, and still one."""
    for answer in (GOOD, BAD):
        site.put("2026-10")
        site.answers = [answer, answer]
        (site.inbox / ".claimed").mkdir(exist_ok=True)
        watcher = site.watcher()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(drops, "move", lambda *_: stop())
            with pytest.raises(Stopped):
                watcher.once()
        site.watcher().once()
    status = read_status(site.data)
    assert (status.published, status.refused) == (1, 1)


def test_a_drop_that_was_taken_away_is_forgotten(site: Site) -> None:
    """By whoever thought better of it."""
    site.put("2026-10")

    def publish(_: Settings, paths: Sequence[str], __: PublishOptions, ___: ProgressCallback) -> Published:
        Path(paths[0]).rename(site.inbox / "_kept")
        raise DropError(f"{paths[0]}: no such file or folder")

    assert site.watcher(publish).once()
    assert site.kinds() == ["publishing", "gone"]
    assert site.placed("quarantine") == []


def test_what_is_no_drop_is_said_once(site: Site) -> None:
    (site.inbox / "notes.txt").touch()
    site.watch(sleeps=3)
    assert site.kinds() == ["watching", "foreign"]


def test_a_second_watcher_stands_by_and_takes_over(site: Site) -> None:
    """Of the same inbox, or for the same data folder."""
    site.inbox.joinpath(".claimed").mkdir()
    with site.watcher()._alone() as status:
        assert isinstance(status, StatusFile)
        site.put("2026-10")
        with pytest.raises(BusyError, match="another watcher"):
            site.watcher().once()
        site.watch(sleeps=3)
    assert (site.kinds(), site.handed) == (["standby"], [])
    site.watch(sleeps=1)
    assert site.handed == ["2026-10"]


def test_an_inbox_that_goes_is_a_problem_until_it_comes_back(site: Site) -> None:
    """And is never made by us."""
    elsewhere = site.inbox.with_name("elsewhere")

    def at(number: int) -> None:
        if number == 1:
            site.inbox.rename(elsewhere)
        if number == 3:
            assert site.problems == [f"the inbox {site.inbox} does not exist"]
            elsewhere.rename(site.inbox)
            site.put("2026-10")
        if number == 4:
            stop()

    site.on_sleep = at
    with pytest.raises(Stopped):
        site.watcher().watch()
    assert site.problems[-1] is None
    assert site.placed("published") == ["2026-10"]


def test_an_inbox_around_the_data_folder_is_refused(site: Site) -> None:
    """Releases would be taken for drops."""
    site.data = site.inbox / "data"
    with pytest.raises(InboxError, match="is in the inbox"):
        site.watcher().prepare()


def test_an_unknown_limit_is_reported_before_a_drop_is_claimed(site: Site) -> None:
    site.put("2026-10")
    watcher = site.watcher()
    watcher._settings = msgspec.structs.replace(watcher._settings, limits={"no-such-rule": 1.0})
    with pytest.raises(WarehouseError, match="no limit is called no-such-rule"):
        watcher.once()
    assert (site.inbox / "2026-10").exists()
