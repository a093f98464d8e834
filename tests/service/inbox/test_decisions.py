"""What a person decides on a held drop; publishing itself is a double here."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from service.base.whoami import whoami
from service.inbox import decisions, folders
from service.inbox.decisions import Decided, deciding, list_held
from service.inbox.report import DropReport
from service.inbox.status import read_status
from service.publishing.publisher import Published
from tests.support.drops import write_drop
from tests.support.inbox import BAD, BUSY, CURRENT, FULL, GOOD, HELD, Site
from tests.support.publishing import publish
from warehouse.releases.catalog import Catalog
from warehouse.rules.all_rules import make_finding
from warehouse.schema.errors import BusyError, CatalogError, InboxError
from warehouse.schema.findings import Finding, make_report

Act = Callable[[Site], Decided]


def approve(site: Site, name: str = "2026-10", *, over_newer: bool = False, reason: str = "census base") -> Decided:
    return decisions.approve(
        site.settings, site.inbox, name, reason, lambda _: None, over_newer=over_newer, publish=site.publish
    )


def discard(site: Site, name: str = "2026-10", reason: str = "too early") -> Decided:
    return decisions.discard(site.settings, site.inbox, name, reason)


def report_in(folder: Path) -> DropReport:
    return msgspec.json.decode((folder / "report.json").read_bytes(), type=DropReport)


def test_an_approved_drop_is_published_and_moved_with_the_decision(site: Site) -> None:
    site.hold("2026-10")
    decided = approve(site)
    assert decided.published == GOOD
    assert decided.place.parent == site.inbox / "published"
    assert {path.name for path in decided.place.iterdir()} == {"2026-10", "report.json", "report.txt"}
    report = report_in(decided.place)
    assert report.decision is not None
    assert (report.result, report.decision.what, report.decision.reason, report.decision.by) == (
        "published",
        "approved",
        "census base",
        whoami(),
    )
    assert f"approved by {whoami()}" in (decided.place / "report.txt").read_text()
    assert list_held(site.inbox) == []
    status = read_status(site.data)
    assert (status.published, status.refused, status.held) == (1, 0, 0)


def test_an_approval_accepts_what_was_found_and_no_more(site: Site) -> None:
    """Each error as far as it went, of these contents, delivered then; the manifest gets the decision."""
    site.hold("2026-10")
    (held,) = list_held(site.inbox)
    approve(site)
    options = site.options[-1]
    assert options.acceptance is not None
    assert (options.acceptance.rules, options.acceptance.limits) == (("total-drift",), {"total-drift": 0.06})
    assert (options.acceptance.reason, options.acceptance.by) == ("census base", whoami())
    assert options.seen is not None
    assert (options.seen.tables, options.seen.newer_than) == ({"population": "aa"}, held.delivered)
    assert options.origin is not None
    assert (options.origin.by, options.origin.via, options.origin.delivered) == (whoami(), "inbox", held.delivered)
    assert options.origin.paths == (str(site.inbox / "2026-10"),)


def test_only_who_says_so_replaces_a_newer_drop(site: Site) -> None:
    site.hold("2026-10")
    approve(site, over_newer=True)
    seen = site.options[-1].seen
    assert seen is not None
    assert seen.newer_than is None


def test_a_drop_in_which_more_is_found_stays_held_with_a_new_report(site: Site) -> None:
    """The next approval covers all that the new report says, also what the first one accepted."""
    site.hold("2026-10")
    more = make_report(
        [
            make_finding("total-drift", "9 % less", measured=0.09),
            msgspec.structs.replace(
                make_finding("zip-codes-lost", "some", measured=0.03), severity="warning", accepted="census base"
            ),
        ]
    )
    site.answers = [Published(outcome=msgspec.structs.replace(HELD.outcome, report=more))]
    decided = approve(site)
    assert decided.place.parent == site.inbox / "held"
    assert decided.published is not None
    assert decided.published.outcome.result == "held"
    (held,) = list_held(site.inbox)
    assert held.report is not None
    assert (sorted(held.rules()), held.report.decision) == (["total-drift", "zip-codes-lost"], None)
    assert "Held for approval: 2 errors; " in (held.path.parent / "report.txt").read_text()
    approve(site)
    acceptance = site.options[-1].acceptance
    assert acceptance is not None
    assert acceptance.limits == {"total-drift": 0.09, "zip-codes-lost": 0.03}


def test_an_approval_judges_by_the_rules_that_held_the_drop(site: Site) -> None:
    """Also in a shell without the watcher's settings; those of the shell hold as well."""
    site.hold("2026-10")
    site.rules = ("slow-drift",)
    approve(site)
    assert sorted(site.options[-1].hold) == ["slow-drift", "total-drift", "zip-codes-lost"]
    (report,) = site.inbox.glob("published/*/report.json")
    assert sorted(report_in(report.parent).hold) == ["slow-drift", "total-drift", "zip-codes-lost"]


def again(*findings: Finding) -> Published:
    """The refusal of a drop that still has the contents with which it was held."""
    outcome = msgspec.structs.replace(HELD.outcome, result="refused", report=make_report(findings))
    return Published(outcome=outcome)


def test_what_no_approval_covers_keeps_a_drop_held_with_a_new_report(site: Site) -> None:
    """It says what can be done; no later approval accepts it, unless its rule was named to hold drops meanwhile."""
    site.hold("2026-10")
    accepted = msgspec.structs.replace(HELD.outcome.report.findings[0], severity="warning", accepted="census base")
    vanished = make_finding("vanished-figure", "2021 is gone")
    site.answers = [again(vanished, accepted)] * 2
    for _ in range(2):
        decided = approve(site)
        (held,) = list_held(site.inbox)
        assert (sorted(held.rules()), held.report and held.report.result) == (
            ["total-drift", "vanished-figure"],
            "refused",
        )
        by_hand = f"forecast extracts publish {held.path} --accept"
        assert decided.to_do is not None
        assert "no approval covers vanished-figure: discard it, or publish it by hand" in decided.to_do
        assert by_hand in decided.to_do
        assert by_hand in (held.path.parent / "report.txt").read_text()
        acceptance = site.options[-1].acceptance
        assert acceptance is not None
        assert acceptance.rules == ("total-drift",)
    site.rules = ("vanished-figure",)
    approve(site)
    acceptance = site.options[-1].acceptance
    assert acceptance is not None
    assert sorted(acceptance.rules) == ["total-drift", "vanished-figure"]


@pytest.mark.parametrize(
    ("rule", "way"),
    [
        ("duplicate-key", "take it out, correct it and move it back into the inbox"),
        ("ignored-file", "publish it by hand"),
    ],
)
def test_what_cannot_be_accepted_at_all_is_to_be_corrected(site: Site, rule: str, way: str) -> None:
    """A publish by hand would be refused as well. What is an error by a setting alone can be accepted."""
    site.hold("2026-10")
    found = msgspec.structs.replace(make_finding(rule, "twice"), severity="error")
    site.answers = [again(found)]
    assert f"no approval covers {rule}: discard it, or {way}" in (approve(site).to_do or "")


def test_more_that_follows_from_what_was_accepted_is_covered_by_the_next_approval(site: Site) -> None:
    """It stood below its cause when the drop was held, and stands alone once the cause is accepted."""
    site.hold("2026-10")
    cause = HELD.outcome.report.findings[0]
    accepted = msgspec.structs.replace(cause, severity="warning", accepted="census base")
    site.answers = [again(accepted, make_finding("series-drift", "further than it was", measured=0.2))]
    decided = approve(site)
    assert decided.published is not None
    assert decided.published.outcome.result == "held"
    assert decided.to_do == "approve it again to accept its new report"


def test_an_overtaken_drop_is_approved_over_the_newer_one(site: Site) -> None:
    """The text says how; what else is new in its report is accepted then."""
    site.hold("2026-10")
    site.answers = [
        again(make_finding("overtaken", "by november"), make_finding("zip-codes-lost", "some", measured=0.03))
    ]
    assert approve(site).to_do == "approve it again with --over-newer to accept its new report"
    approve(site, over_newer=True)
    acceptance = site.options[-1].acceptance
    assert acceptance is not None
    assert acceptance.limits == {"zip-codes-lost": 0.03}


def test_a_drop_whose_contents_cannot_be_read_as_they_were_stays_held_as_it_was(site: Site) -> None:
    """Damaged, say, or changed since; its report is the one that the person read."""
    site.hold("2026-10")
    (before,) = list_held(site.inbox)
    site.answers = [BAD]
    decided = approve(site)
    assert decided.published == BAD
    assert list_held(site.inbox) == [before]
    assert read_status(site.data).held == 1


@pytest.mark.parametrize("failure", [FULL, BUSY])
def test_a_failure_that_is_not_the_drop_s_leaves_it_held(site: Site, failure: Exception) -> None:
    site.hold("2026-10")
    site.answers = [failure]
    with pytest.raises((CatalogError, BusyError)):
        approve(site)
    assert site.placed("held") == ["2026-10"]
    approve(site)
    assert site.placed("published") == ["2026-10"]


def test_a_drop_without_its_report_cannot_be_approved(site: Site) -> None:
    """Nobody knows what would be accepted; it can be discarded."""
    site.hold("2026-10")
    (held,) = list_held(site.inbox)
    (held.path.parent / "report.json").unlink()
    with pytest.raises(InboxError, match="lost or damaged"):
        approve(site)
    decided = discard(site)
    report = report_in(decided.place)
    assert report.decision is not None
    assert (report.drop, report.decision.reason) == ("2026-10", "too early")


@pytest.mark.parametrize("act", [approve, discard])
def test_a_drop_that_was_held_for_another_data_folder_is_left_alone(site: Site, act: Act) -> None:
    """A forgotten FORECAST_DATA_DIR must not publish it elsewhere."""
    site.hold("2026-10")
    site.data = site.data.with_name("other")
    site.data.mkdir()
    with pytest.raises(InboxError, match=r"was held for the data folder .*/data; this is .*/other"):
        act(site)
    assert site.placed("held") == ["2026-10"]


def test_the_same_data_folder_by_another_path_is_the_same(site: Site) -> None:
    site.hold("2026-10")
    link = site.data.with_name("link")
    link.symlink_to(site.data)
    site.data = link
    approve(site)
    assert site.placed("published") == ["2026-10"]


@pytest.mark.parametrize("act", [approve, discard])
def test_while_another_decides_nothing_is_decided(site: Site, act: Act) -> None:
    site.hold("2026-10")
    with deciding(site.inbox), pytest.raises(BusyError, match="deciding"):
        act(site)
    assert site.placed("held") == ["2026-10"]


def test_a_discarded_drop_is_in_quarantine_with_the_decision_and_its_report(site: Site) -> None:
    site.hold("2026-10")
    decided = discard(site, reason="too early\x1b[2J")
    assert decided.place.parent == site.inbox / "quarantine"
    assert (decided.place / "2026-10" / "part.parquet").exists()
    report = report_in(decided.place)
    assert report.decision is not None
    assert (report.decision.what, report.decision.reason) == ("discarded", "too early\\u001b[2J")
    assert [finding.rule for finding in report.findings] == ["total-drift"]
    text = (decided.place / "report.txt").read_text()
    assert f"discarded by {whoami()}" in text
    assert "Held for approval: 1 error; " in text
    status = read_status(site.data)
    assert (status.published, status.refused, status.held, status.untold) == (0, 1, 0, None)
    assert status.last_refusal is not None


def test_a_drop_that_is_live_is_not_discarded_and_approved_whatever_is_found(site: Site, tmp_path: Path) -> None:
    """Its approval was killed after the switch, say, or it was published by hand with --accept."""
    drop = write_drop(tmp_path / "drop")
    outcome = publish(Catalog(site.data), [str(drop)])
    held = msgspec.structs.replace(HELD.outcome, tables=outcome.tables, manifest=outcome.manifest)
    site.hold("2026-10", Published(outcome=held))
    assert outcome.manifest is not None
    with pytest.raises(InboxError, match=f"is live as {outcome.manifest.id}: .*approve.* completes .*rollback"):
        discard(site)
    report = make_report([make_finding("vanished-figure", "2021 is gone")])
    site.answers = [Published(outcome=msgspec.structs.replace(held, result="refused", report=report))]
    decided = approve(site)
    assert (decided.place.parent.name, decided.to_do) == ("published", None)
    written = report_in(decided.place)
    assert (written.result, [finding.severity for finding in written.findings]) == ("already_current", ["warning"])


class Crash(BaseException):
    pass


def crashing(*_: object) -> None:
    raise Crash


@pytest.mark.parametrize("step", ["write_reports", "sync"])
@pytest.mark.parametrize(("act", "place"), [(approve, "published"), (discard, "quarantine")])
def test_a_decision_that_was_interrupted_is_completed_by_the_same_command(
    site: Site, act: Act, place: str, step: str
) -> None:
    """Before the rename the drop is held, after it the decision is made; it is whole in either place."""
    site.hold("2026-10")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folders, step, crashing)
        with pytest.raises(Crash):
            act(site)
    at = [path for path in site.inbox.glob("*/*/2026-10") if (path / "part.parquet").exists()]
    assert len(at) == 1
    if step == "write_reports":
        assert site.placed("held") == ["2026-10"]
        site.answers = [CURRENT]
        act(site)
    assert (site.placed("held"), site.placed(place)) == ([], ["2026-10"])


def test_reports_that_were_written_before_a_crash_do_not_keep_the_drop_from_being_approved(site: Site) -> None:
    """It may be live already: then the next approval only moves it."""
    site.hold("2026-10")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "rename", crashing)
        with pytest.raises(Crash):
            approve(site)
    (held,) = list_held(site.inbox)
    assert held.report is not None
    assert held.report.decision is not None
    site.answers = [CURRENT]
    decided = approve(site)
    assert report_in(decided.place).result == "already_current"


@pytest.mark.parametrize(("act", "kind"), [(approve, "approved"), (discard, "discarded")])
def test_a_watcher_logs_what_was_decided(site: Site, act: Act, kind: str) -> None:
    """With who and why, where operators look: the command's own output is gone with its terminal."""
    site.hold("2026-10")
    watcher = site.watcher()
    watcher.once()
    site.events.clear()
    act(site)
    watcher.once()
    (event,) = site.events
    assert (event.event, event.drop) == (kind, "2026-10")
    assert whoami() in event.message
    assert event.place is not None
    assert Path(event.place).is_dir()
