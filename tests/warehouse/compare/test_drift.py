"""What changes from the current release is held against limits; what exceeds one needs somebody's word."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support import publishing as publisher
from tests.support.drops import HOUSING, LOCATIONS, POPULATION, location, people, project, write_drop
from tests.warehouse.comparisons import ANSWERS, UNCHANGED, compared, figure
from tests.warehouse.helpers import ATTRIBUTION, NO_LIMITS, errors, finding
from tests.warehouse.helpers import publish as publish_unlimited
from tests.warehouse.publishing.test_publish_partial import illustrative
from warehouse.compare.drift import drift_findings
from warehouse.publishing.outcome import PublishOptions, PublishOutcome
from warehouse.releases.catalog import Catalog
from warehouse.rules.all_rules import RULES, RuleLimits
from warehouse.rules.drift_rules import DRIFT_RULES
from warehouse.schema.comparison import Comparison, RecordChanges
from warehouse.schema.errors import WarehouseError
from warehouse.schema.findings import Acceptance

ACCEPTED = Acceptance(
    rules=("zip-codes-lost",),
    limits={"zip-codes-lost": 0.5},
    reason="closed post offices",
    by="ann@here",
    at=datetime(2026, 10, 5, 9, tzinfo=UTC),
)


def changed_units(number: int) -> RecordChanges:
    """Of 100 records that stay, beside 10 that are gone."""
    columns = {"total_units": number, "status": 3}
    return RecordChanges(old_count=110, gained=0, lost=10, changed=number, columns=columns)


def projects(**over: Any) -> Comparison:
    same = {"old_count": 100, "gained": 0, "lost": 0, "changed": 0}
    return compared(records={"development_projects": RecordChanges(**{**same, **over})})


def suspect(number: int) -> dict[str, Any]:
    """Dates of some records that are the former ones with day and month exchanged."""
    return {
        "changed": number,
        "columns": {"start_date": number},
        "moves": {"start_date": ("2026-05-10 to 2026-10-05 (1)",)},
        "suspicions": {"start_date": "day and month may be exchanged"},
        "suspects": {"start_date": number},
    }


# For each limited rule: a comparison that reaches its limit, and one that is just above.
AT_AND_ABOVE: dict[str, tuple[Comparison, Comparison]] = {
    "records-lost": (
        projects(lost=20, changed=90),
        projects(gained=25, lost=21),
    ),
    "records-gained": (projects(gained=25), projects(gained=26)),
    "suspect-records": (projects(**suspect(20)), projects(**suspect(21))),
    "records-changed": (
        compared(records={"development_projects": changed_units(25)}),
        compared(records={"development_projects": changed_units(26)}),
    ),
    "vanished-figure": (
        UNCHANGED,
        compared(figures=(figure("population 2009", new_total=None, new_count=0, lost=100),)),
    ),
}


def fired(comparison: Comparison, limits: dict[str, float] | None = None) -> list[str]:
    found = drift_findings(comparison, RuleLimits(limits))
    return [one.rule for one in found if one.severity == "error"]


def publish(catalog: Catalog, drop: Path, acceptance: Acceptance | None = None, **limits: float) -> PublishOutcome:
    """With no limit but the given ones; underscores stand for the hyphens of rules."""
    named = {name.replace("_", "-"): limit for name, limit in limits.items()}
    options = PublishOptions(attribution=ATTRIBUTION, limits=NO_LIMITS | named, acceptance=acceptance)
    return publisher.publish(catalog, [str(drop)], options)


def without_some_places(folder: Path) -> Path:
    return write_drop(folder, locations=LOCATIONS[:-3])


def test_every_limited_rule_is_tried_here() -> None:
    assert set(AT_AND_ABOVE) == {rule.name for rule in DRIFT_RULES if rule.limit is not None}


@pytest.mark.parametrize("rule", AT_AND_ABOVE)
def test_a_rule_fires_above_its_limit_and_not_at_it(rule: str) -> None:
    at, above = AT_AND_ABOVE[rule]
    assert fired(at) == []
    assert fired(above) == [rule]


@pytest.mark.parametrize("rule", AT_AND_ABOVE)
def test_a_limit_can_be_set(rule: str) -> None:
    """Wider or narrower than the rule's own."""
    at, above = AT_AND_ABOVE[rule]
    shares = RULES[rule].unit == "share"
    assert fired(above, {rule: 0.5 if shares else 50}) == []
    assert fired(at, {rule: 0.01 if shares else 0}) == ([] if at == UNCHANGED else [rule])


def test_a_limit_that_no_rule_has_is_refused() -> None:
    with pytest.raises(WarehouseError, match=r"no limit is called zip-code-lost \(did you mean zip-codes-lost"):
        RuleLimits({"zip-code-lost": 0.5})


@pytest.mark.parametrize(
    ("rule", "limit", "why"),
    [
        ("total-drift", 8, "total-drift is 800%: a share is at most 100%, or 1e9 for no limit"),
        ("leaping-figure", 0.05, "leaping-figure is a number of ZIP codes, not 0.05"),
    ],
)
def test_a_limit_in_the_wrong_unit_is_refused(rule: str, limit: float, why: str) -> None:
    with pytest.raises(WarehouseError, match=why):
        RuleLimits({rule: limit})


def test_every_figure_that_is_lost_is_reported_to_the_data_engineer() -> None:
    """Below the limit of an error as well: a partner's answer has a null more."""
    lost = figure(lost=1, new_count=99)
    (found, _) = drift_findings(compared(figures=(lost, figure("population 2010"))), RuleLimits())
    assert (found.rule, found.severity, found.count) == ("lost-figures", "warning", 1)
    assert found.samples == ("population 2023: 1 of 100",)


def test_figures_of_zip_codes_that_are_gone_are_not_reported_as_lost() -> None:
    comparison = compared(figures=(figure(lost=1, new_count=99),), answers=msgspec.structs.replace(ANSWERS, without=0))
    assert [one.rule for one in drift_findings(comparison, RuleLimits())] == ["changed-figures"]


def test_a_figure_that_is_gone_altogether_is_an_error_and_no_drift() -> None:
    gone = figure("population 2009", new_total=None, new_count=0, lost=100)
    assert fired(compared(figures=(gone,))) == ["vanished-figure"]
    found = drift_findings(compared(figures=(gone,)), RuleLimits())[0]
    assert (found.severity, found.samples, found.measured) == ("error", ("population 2009",), 1)


def test_a_figure_that_is_new_is_no_drift() -> None:
    assert fired(compared(figures=(figure(old_total=None, old_count=0, gained=100),))) == []


def test_a_change_is_always_summed_up_in_one_line() -> None:
    comparison = compared(places=msgspec.structs.replace(UNCHANGED.places, changed=2), changed_zip_codes=7)
    (found,) = drift_findings(comparison, RuleLimits())
    assert (found.rule, found.severity, found.count) == ("changed-figures", "info", 7)
    assert found.message == (
        "compared with the current release: 0 ZIP codes new, 0 gone, 2 moved or renamed, 7 with other figures"
    )


def test_drift_beyond_a_limit_refuses_the_drop(catalog: Catalog, drop: Path, tmp_path: Path) -> None:
    first = publish_unlimited(catalog, drop)
    outcome = publish(catalog, without_some_places(tmp_path / "less"), zip_codes_lost=0.3)
    assert errors(outcome) == ["zip-codes-lost"]
    assert finding(outcome, "zip-codes-lost").samples == ("09001 APO", "63366 O Fallon", "58601 Dickinson")
    assert outcome.manifest == first.manifest == catalog.current()


def test_accepting_one_rule_lets_no_other_through(catalog: Catalog, drop: Path, tmp_path: Path) -> None:
    publish_unlimited(catalog, drop)
    less = write_drop(tmp_path / "less", locations=LOCATIONS[:-3], population=[people("36436", 2023, 9)])
    outcome = publish(catalog, less, ACCEPTED, zip_codes_lost=0.3, total_drift=0.5)
    assert errors(outcome) == ["total-drift"]
    assert catalog.current().acceptance is None


@pytest.mark.parametrize("rule", ["duplicate-key", "nothing"])
def test_only_rules_that_say_so_can_be_accepted(catalog: Catalog, drop: Path, rule: str) -> None:
    with pytest.raises(WarehouseError, match=f"{rule} cannot be accepted: .*`forecast extracts rules`"):
        publish(catalog, drop, msgspec.structs.replace(ACCEPTED, rules=(rule,)))


def test_a_figure_that_the_release_has_takes_two_options_to_publish_without_it(
    catalog: Catalog, tmp_path: Path
) -> None:
    """The first report names both, and the second publish goes through."""
    publish_unlimited(catalog, write_drop(tmp_path / "all"))
    short = [{name: value for name, value in row.items() if name != "tot_home_available_2021"} for row in HOUSING]
    drop = write_drop(tmp_path / "short", housing=short)
    outcome = publish(catalog, drop, vanished_figure=0)
    assert [(one.rule, one.follows) for one in outcome.report.findings if one.severity == "error"] == [
        ("missing-figure", None),
        ("vanished-figure", "missing-figure"),
    ]
    assert "--accept missing-figure --accept vanished-figure=1 --reason" in (
        finding(outcome, "missing-figure").remedy or ""
    )
    both = msgspec.structs.replace(ACCEPTED, rules=("missing-figure", "vanished-figure"), limits={"vanished-figure": 1})
    assert publish(catalog, drop, both, vanished_figure=0).result == "published"


def test_vanished_years_are_the_first_warning_where_a_setting_makes_them_one(
    catalog: Catalog, drop: Path, tmp_path: Path
) -> None:
    """Before warnings that files and rows brought earlier."""
    publish_unlimited(catalog, drop)
    kept = [row for row in POPULATION if row["year"] != 2010]
    less = write_drop(tmp_path / "less", population=[*kept, people("17270", 2023, 1)], aliases=None)
    outcome = publisher.publish(
        catalog,
        [str(less)],
        PublishOptions(
            limits=NO_LIMITS | {"vanished-figure": 0},
            severities={"vanished-figure": "warning"},
            attribution=ATTRIBUTION,
        ),
    )
    assert outcome.result == "published"
    rules = [one.rule for one in outcome.report.findings if one.severity == "warning"]
    assert rules == ["vanished-figure", "orphan-rows"]
    assert "population 2010" in outcome.report.findings[0].message


def test_projects_in_another_unit_are_refused_and_the_column_named(catalog: Catalog, tmp_path: Path) -> None:
    """Nothing but the release before tells that each of them is wrong."""
    good = [project(f"A-{number}", total_units=number) for number in range(1, 41)]
    assert publish(catalog, write_drop(tmp_path / "good", projects=good)).result == "published"
    scaled = [{**one, "total_units": 10 * one["total_units"]} for one in good]
    outcome = publish(catalog, write_drop(tmp_path / "scaled", projects=scaled), records_changed=0.25)
    assert errors(outcome) == ["records-changed"]
    found = finding(outcome, "records-changed")
    moves = "1 to 10 (1), 10 to 100 (1), 11 to 110 (1)"
    assert (found.column, found.count, found.samples) == ("total_units", 40, (f"total_units: {moves}",))


def test_illustrative_releases_are_never_compared_with(catalog: Catalog, tmp_path: Path) -> None:
    """Neither a real drop with made-up figures, nor the other way round."""
    other = write_drop(tmp_path / "real", locations=[location("36436", "Dickinson", "AL")])
    for drop in (illustrative(tmp_path / "demo"), other, illustrative(tmp_path / "demo2")):
        outcome = publisher.publish(catalog, [str(drop)], PublishOptions(attribution=ATTRIBUTION))
        assert outcome.result == "published"
        assert outcome.report.comparison is None


def test_a_first_release_is_compared_with_nothing(catalog: Catalog, drop: Path) -> None:
    assert publish(catalog, drop, total_drift=0.0).report.comparison is None


def test_a_state_that_loses_all_its_projects_is_named_at_any_share() -> None:
    (lost, _) = drift_findings(projects(lost=20, emptied={"CA": 20}), RuleLimits())
    assert lost.message == "all 20 records of development_projects in CA would be lost"
    assert lost.measured_in == {"CA": 1.0}
