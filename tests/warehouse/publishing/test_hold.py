"""Drops of which more is asked, because nobody looks on: required tables, and rules that hold a drop for approval."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.drops import POPULATION, people, write_drop
from tests.support.publishing import publish
from tests.warehouse.helpers import NO_LIMITS, errors, finding
from warehouse.publishing.outcome import PublishOptions, PublishOutcome, SeenWhenHeld
from warehouse.releases.catalog import Catalog, Origin
from warehouse.rules.acceptance import accept_found
from warehouse.schema.errors import WarehouseError
from warehouse.schema.findings import Acceptance

NOW = datetime(2026, 10, 5, 12, 30, tzinfo=UTC)


def published(
    catalog: Catalog,
    drop: Path,
    *,
    hold: tuple[str, ...] = (),
    required: tuple[str, ...] = (),
    limits: dict[str, float] | None = None,
    acceptance: Acceptance | None = None,
    seen: SeenWhenHeld | None = None,
    delivered: datetime | None = None,
) -> PublishOutcome:
    options = PublishOptions(
        limits=NO_LIMITS | (limits or {}),
        hold=hold,
        required=required,
        acceptance=acceptance,
        seen=seen,
        origin=Origin(by="a", host="b", paths=(), via="inbox", delivered=delivered),
    )
    return publish(catalog, [str(drop)], options)


def newer(tmp_path: Path, figure: int, name: str = "newer") -> Path:
    """A drop in which one figure is another."""
    first, *others = POPULATION
    return write_drop(tmp_path / name, population=[{**first, "tot_population": figure}, *others])


def test_a_drop_that_lacks_a_required_table_is_refused(catalog: Catalog, drop: Path, tmp_path: Path) -> None:
    """Though the current release has it: one table of a new month does not go with the others of the old one."""
    published(catalog, drop)
    part = write_drop(tmp_path / "part", locations=None, housing=None, aliases=None)
    before = catalog.current().id
    outcome = published(catalog, part, required=("population", "housing", "aliases"))
    assert (outcome.result, errors(outcome)) == ("refused", ["required-table"])
    found = finding(outcome, "required-table")
    assert (found.message, found.samples) == ("the drop lacks housing, aliases", ("housing", "aliases"))
    assert catalog.current().id == before
    assert published(catalog, part, required=("population",)).result in ("published", "already_current")


def test_a_table_that_is_broken_is_there(catalog: Catalog, drop: Path, tmp_path: Path) -> None:
    """Its own error tells what is wrong with it."""
    published(catalog, drop)
    broken = write_drop(tmp_path / "broken", population=[people("36436", 2023, -1)])
    assert "required-table" not in errors(published(catalog, broken, required=("population",)))


def test_a_needed_table_that_no_release_has_is_reported_once(catalog: Catalog, tmp_path: Path) -> None:
    part = write_drop(tmp_path / "part", housing=None)
    outcome = published(catalog, part, required=("locations", "population", "housing"))
    assert errors(outcome) == ["missing-table"]


@pytest.mark.parametrize("rule", ["total-drift", "changed-figures"])
def test_a_finding_of_a_rule_to_hold_holds_the_drop_whatever_its_severity(
    catalog: Catalog, drop: Path, tmp_path: Path, rule: str
) -> None:
    """An error that would refuse it, or a note that would let it through; nothing goes live."""
    published(catalog, drop)
    before = catalog.current().id
    limits = {"total-drift": 0.0} if rule == "total-drift" else {}
    outcome = published(catalog, newer(tmp_path, 900), hold=(rule,), limits=limits)
    assert (outcome.result, errors(outcome)) == ("held", [rule])
    assert catalog.current().id == before
    assert {"locations", "population", "housing"} <= set(outcome.tables)
    assert published(catalog, newer(tmp_path, 900, "again"), limits={"total-drift": 0.0}).result == "refused"


def test_a_drop_with_other_errors_is_refused(catalog: Catalog, drop: Path, tmp_path: Path) -> None:
    """No approval could let them through."""
    published(catalog, drop)
    bad = write_drop(tmp_path / "bad", population=[*POPULATION, people("36436", 2024, -1)])
    assert published(catalog, bad, hold=("total-drift", "changed-figures")).result == "refused"


def test_a_drop_in_which_no_rule_to_hold_finds_anything_is_published(
    catalog: Catalog, drop: Path, tmp_path: Path
) -> None:
    published(catalog, drop)
    assert published(catalog, newer(tmp_path, 900), hold=("zip-codes-lost",)).result == "published"


def test_what_is_current_already_is_not_held(catalog: Catalog, tmp_path: Path) -> None:
    """There is nothing to decide, even if it has what holds a drop."""
    odd = write_drop(tmp_path / "odd", population=[*POPULATION, people("99999", 2023, 1)])
    assert published(catalog, odd, hold=("orphan-rows",)).result == "held"
    published(catalog, odd)
    again = published(catalog, odd, hold=("orphan-rows",))
    assert (again.result, finding(again, "orphan-rows").severity) == ("already_current", "warning")


@pytest.mark.parametrize("rule", ["duplicate-key", "nothing"])
def test_only_what_can_be_accepted_can_hold_a_drop(catalog: Catalog, drop: Path, rule: str) -> None:
    with pytest.raises(WarehouseError, match=f"{rule} cannot be held for approval .*`forecast extracts rules`"):
        published(catalog, drop, hold=(rule,))


def held(catalog: Catalog, drop: Path, hold: tuple[str, ...] = ("changed-figures",)) -> tuple[Acceptance, SeenWhenHeld]:
    outcome = published(catalog, drop, hold=hold)
    assert outcome.result == "held"
    return accept_found(outcome.report.findings, "seen", "ops", NOW), SeenWhenHeld(outcome.tables, datetime.now(UTC))


def test_an_approved_drop_goes_live_and_its_manifest_says_why(catalog: Catalog, drop: Path, tmp_path: Path) -> None:
    """Also if it was held by what is a note otherwise."""
    published(catalog, drop)
    arrived = newer(tmp_path, 900)
    acceptance, seen = held(catalog, arrived)
    outcome = published(
        catalog, arrived, hold=("changed-figures",), acceptance=acceptance, seen=seen, delivered=seen.newer_than
    )
    assert outcome.result == "published"
    assert finding(outcome, "changed-figures").accepted == "seen"
    current = catalog.current()
    assert current.acceptance == acceptance
    assert current.delivered == seen.newer_than


def test_an_approval_does_not_cover_a_further_drift(catalog: Catalog, drop: Path, tmp_path: Path) -> None:
    """What is current has changed since, and the drop goes further from it than anybody saw."""
    published(catalog, drop)
    arrived = newer(tmp_path, 900)
    outcome = published(catalog, arrived, hold=("total-drift",), limits={"total-drift": 0.0})
    acceptance = accept_found(outcome.report.findings, "seen", "ops", NOW)
    published(catalog, newer(tmp_path, 90_000, "meanwhile"), delivered=NOW)
    again = published(
        catalog,
        arrived,
        hold=("total-drift",),
        limits={"total-drift": 0.0},
        acceptance=acceptance,
        seen=SeenWhenHeld(outcome.tables, NOW + timedelta(days=1)),
    )
    assert (again.result, errors(again)) == ("held", ["total-drift"])


def test_a_drop_that_has_changed_since_cannot_be_approved(catalog: Catalog, drop: Path, tmp_path: Path) -> None:
    """Nobody has seen what it holds now."""
    published(catalog, drop)
    acceptance, seen = held(catalog, newer(tmp_path, 900))
    outcome = published(
        catalog, newer(tmp_path, 901, "changed"), hold=("changed-figures",), acceptance=acceptance, seen=seen
    )
    assert (outcome.result, errors(outcome)) == ("refused", ["changed-file"])
    assert "changed since it was held: population" in finding(outcome, "changed-file").message


def test_a_drop_is_approved_over_a_newer_one_only_if_that_was_said(
    catalog: Catalog, drop: Path, tmp_path: Path
) -> None:
    """Of two drops, the one that was delivered later is newer, whenever each went live."""
    published(catalog, drop)
    arrived = newer(tmp_path, 900)
    acceptance, seen = held(catalog, arrived)
    approved = {"hold": ("changed-figures",), "acceptance": acceptance}
    later = datetime.now(UTC) + timedelta(hours=1)
    published(catalog, newer(tmp_path, 901, "november"), delivered=later)
    outcome = published(catalog, arrived, seen=seen, **approved)  # type: ignore[arg-type]  # of several types
    assert (outcome.result, errors(outcome)) == ("refused", ["overtaken"])
    assert "--over-newer" in (finding(outcome, "overtaken").remedy or "")
    over = SeenWhenHeld(seen.tables, None)
    assert published(catalog, arrived, seen=over, delivered=NOW, **approved).result == "published"  # type: ignore[arg-type]
    # the older one is live now, but was delivered before: the newer one replaces it without a word
    november = newer(tmp_path, 902, "november again")
    acceptance, seen = held(catalog, november)
    outcome = published(catalog, november, hold=("changed-figures",), acceptance=acceptance, seen=seen)
    assert outcome.result == "published"
