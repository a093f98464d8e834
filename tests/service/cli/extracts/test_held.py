"""forecast extracts held, approve, discard: what is printed where, and the exit codes."""

from pathlib import Path

import pytest

from config.text import printable
from service.base.whoami import whoami
from tests.service.conftest import Cli
from tests.support.drops import people, write_drop
from tests.support.instance import NO_DRIFT_LIMITS

REASON = "2030 census base"


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    folder = tmp_path / "inbox"
    folder.mkdir()
    return folder


@pytest.fixture
def site(cli: Cli, release: str, inbox: Path) -> Cli:
    """A release, and an inbox that holds whatever changes a figure."""
    cli.settings |= {"inbox": str(inbox), "inbox_hold": "changed-figures"}
    return cli


def hold(site: Cli, inbox: Path, name: str = "2026-10", figure: int = 900) -> str:
    """The id of a drop that is held."""
    write_drop(inbox / name, population=[people("36436", 2023, figure)])
    (inbox / name / "_SUCCESS").touch()
    done = site("extracts", "watch", "--once")
    assert done.code == 1, "a person is needed"
    assert f"{printable(name)} is held for approval" in done.err
    held: list[str] = [one["id"] for one in site("extracts", "held", "--json").json if one["name"] == name]
    return held[-1]


def test_nothing_held_is_said(site: Cli, inbox: Path) -> None:
    assert site("extracts", "held").out == f"No drop is held in {inbox}.\n"
    assert site("extracts", "held", "--json").json == []


def test_held_drops_are_listed_with_all_that_a_decision_needs_also_of_a_named_inbox(site: Cli, inbox: Path) -> None:
    drop = hold(site, inbox)
    out = " ".join(site("extracts", "held").out.split())
    for part in (
        "2026-10, held since 20",
        "changed-figures",
        f"forecast extracts approve --reason TEXT {drop}",
        f"forecast extracts discard --reason TEXT {drop}",
        "report.txt",
    ):
        assert part in out
    assert "--over-newer" not in out
    (one,) = site("extracts", "held", "--json").json
    assert (one["id"], one["name"], one["rules"], one["newer_release"]) == (drop, "2026-10", ["changed-figures"], None)
    assert one["data_folder"] == one["for_data_folder"] == str(site.data)
    assert Path(one["report"]).is_file()
    assert Path(one["path"]).is_dir()
    moved = inbox.rename(inbox.with_name("moved"))
    assert len(site("extracts", "held", "--inbox", str(moved), "--json").json) == 1
    assert f"approve --reason TEXT --inbox {moved} {drop}" in site("extracts", "held", "--inbox", str(moved)).out
    assert site("extracts", "held").code == 1
    assert site("extracts", "approve", "2026-10", "--reason", REASON, "--inbox", str(moved)).code == 0


def test_an_approved_drop_is_current_and_its_manifest_says_who_and_why(site: Cli, inbox: Path) -> None:
    hold(site, inbox)
    done = site("extracts", "approve", "2026-10", "--reason", REASON)
    assert done.code == 0, done.err
    assert "Published" in done.err
    manifest = site("extracts", "show", "--json").json["manifest"]
    assert manifest["id"] == done.out.strip()
    acceptance = manifest["acceptance"]
    assert (acceptance["rules"], acceptance["reason"], acceptance["by"]) == (["changed-figures"], REASON, whoami())
    origin = manifest["origin"]
    assert (origin["by"], origin["via"], origin["paths"]) == (whoami(), "inbox", [str(inbox / "2026-10")])
    assert list(inbox.glob("published/2026-10-*/2026-10"))
    assert site("extracts", "held", "--json").json == []


def test_over_a_newer_drop_it_is_approved_only_with_the_option(site: Cli, inbox: Path) -> None:
    drop = hold(site, inbox)
    write_drop(inbox / "2026-11", population=[people("36436", 2023, 901)])
    (inbox / "2026-11" / "_SUCCESS").touch()
    assert site("extracts", "watch", "--once", inbox_hold="aliases-lost").code == 0
    current = site("extracts", "show", "--json").json["manifest"]["id"]
    assert f"a newer drop went live meanwhile: {current}" in " ".join(site("extracts", "held").out.split())
    done = site("extracts", "approve", "2026-10", "--reason", REASON)
    assert (done.code, done.out) == (1, "")
    assert "overtaken" in done.err
    assert "2026-10 stays held" in done.err
    said = site("extracts", "approve", drop, "--reason", REASON, "--over-newer", "--json").json
    assert (said["result"], said["drop"], said["behind"]) == ("published", "2026-10", [])
    assert (said["place"], said["data_folder"]) == (str(inbox / "published" / drop / "2026-10"), str(site.data))


def test_a_drop_that_no_approval_lets_through_is_published_by_hand_as_the_text_says(site: Cli, inbox: Path) -> None:
    """It is live then: an approval only moves it, and it cannot be discarded."""
    drop = hold(site, inbox, figure=40_000)
    other = write_drop(inbox.parent / "other", population=[people("36436", 2023, 700)])
    assert site("extracts", "publish", str(other)).code == 0
    site.settings["limits"] = f"{NO_DRIFT_LIMITS}, total-drift=5%"
    done = site("extracts", "approve", drop, "--reason", REASON, "--over-newer")
    way = (
        "no approval covers total-drift: discard it, or publish it by hand: "
        f"`forecast extracts publish {inbox}/held/{drop}/2026-10 --accept ... --reason TEXT`"
    )
    assert done.code == 1
    assert way in done.err
    out = site("extracts", "held").out
    assert way in out
    assert "extracts approve" not in out
    path = str(inbox / "held" / drop / "2026-10")
    accept = ("--accept", "total-drift=10000%", "--reason", REASON)
    release = site("extracts", "publish", path, *accept).out.strip()
    out = site("extracts", "held").out
    assert f"it is live as {release}" in out
    assert "extracts discard" not in out
    (one,) = site("extracts", "held", "--json").json
    assert (one["live_as"], one["newer_release"]) == (release, None)
    done = site("extracts", "discard", drop, "--reason", REASON)
    assert done.code == 1
    assert f"{drop} is live as {release}" in done.error()
    assert site("extracts", "approve", drop, "--reason", REASON).out.strip() == release
    assert site("extracts", "held", "--json").json == []


def test_a_discarded_drop_is_in_quarantine(site: Cli, inbox: Path) -> None:
    drop = hold(site, inbox)
    done = site("extracts", "discard", "2026-10", "--reason", "exported too early")
    assert (done.code, done.out.strip()) == (0, str(inbox / "quarantine" / drop))
    text = (inbox / "quarantine" / drop / "report.txt").read_text()
    assert f"discarded by {whoami()}" in text
    assert "exported too early" in text


@pytest.mark.parametrize("command", ["approve", "discard"])
def test_a_decision_needs_a_held_drop_and_a_reason(site: Cli, inbox: Path, command: str) -> None:
    done = site("extracts", command, "2026-10", "--reason", REASON, "--json")
    assert done.code == 1
    assert done.error() == f"no drop 2026-10 is held in {inbox}: `forecast extracts held` lists the held drops"
    for reason in ((), ("--reason", " ")):
        assert site("extracts", command, "2026-10", *reason).code == 2


@pytest.mark.parametrize("command", [("held",), ("approve", "x", "--reason", "y"), ("discard", "x", "--reason", "y")])
def test_without_an_inbox_it_is_wrong_usage(cli: Cli, command: tuple[str, ...]) -> None:
    done = cli("extracts", *command)
    assert done.code == 2
    assert "FORECAST_INBOX" in done.err


def test_a_rule_that_cannot_hold_a_drop_is_reported_before_a_drop_is_claimed(site: Cli, inbox: Path) -> None:
    write_drop(inbox / "2026-10")
    (inbox / "2026-10" / "_SUCCESS").touch()
    done = site("extracts", "watch", "--once", inbox_hold="duplicate-key")
    assert done.code == 1
    assert done.error().startswith("duplicate-key cannot be held for approval (FORECAST_INBOX_HOLD): its findings")
    assert (inbox / "2026-10").exists()


def test_a_drop_that_lacks_a_required_table_is_refused(site: Cli, inbox: Path) -> None:
    write_drop(inbox / "2026-10", housing=None)
    (inbox / "2026-10" / "_SUCCESS").touch()
    assert site("extracts", "watch", "--once", inbox_tables="population,housing", inbox_hold="aliases-lost").code == 1
    (report,) = inbox.glob("quarantine/*/report.txt")
    assert "the drop lacks housing" in " ".join(report.read_text().split())
    done = site("extracts", "watch", "--once", inbox_tables="popluation")
    assert done.code == 1
    assert done.error().startswith("FORECAST_INBOX_TABLES: Expected one of locations, population,")
    assert "in place of 'popluation'" in done.error()
