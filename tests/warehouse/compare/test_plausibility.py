"""Data that is well-formed and wrong is refused with its cause; what really changes from month to month is not."""

import re
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.country import COUNTED, DEMAND, FORECAST, HOMES, PEOPLE, Country, census, make_country
from tests.support.publishing import dry_run, publish
from tests.warehouse.altering import (
    POINT,
    Alter,
    each,
    edit,
    fill,
    lose,
    noise,
    scale,
    shift,
    shuffle,
    without,
    without_column,
)
from tests.warehouse.helpers import ATTRIBUTION, a_month_apart, drops_of, errors, finding
from tests.warehouse.implausible_drops import IMPLAUSIBLE_DROPS, WRONG_TOGETHER, last_month
from tests.warehouse.real_changes import REAL_CHANGES, REAL_TOGETHER
from warehouse.publishing import publish as publisher
from warehouse.publishing.outcome import PublishOptions, PublishOutcome
from warehouse.releases.catalog import Catalog, Manifest
from warehouse.releases.files import table_file
from warehouse.rules.acceptance import accept_found, parse_acceptance
from warehouse.schema.findings import Acceptance, Finding

WRONG = [one.kind for one in IMPLAUSIBLE_DROPS]
REAL = [one.kind for one in REAL_CHANGES]
OPEN = 2024  # the first year whose figures may still be revised
Made = Callable[[Alter], Path]


@pytest.fixture(scope="module", autouse=True)
def autumn_of_2026() -> Iterator[None]:
    """Which figures may still be revised depends on the day."""
    with pytest.MonkeyPatch.context() as patch, a_month_apart():
        patch.setattr(publisher, "first_open_year", lambda _: OPEN)
        yield


@pytest.fixture(scope="module")
def country() -> Country:
    return make_country()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, country: Country) -> Catalog:
    """A data folder with the releases of September and October, which no test may change."""
    folder = tmp_path_factory.mktemp("served")
    catalog = Catalog(folder / "data")
    september = country.copy()
    last_month(september)
    for drop in (september.write(folder / "september"), country.write(folder / "october")):
        assert errors(published(catalog, drop)) == []
    return catalog


@pytest.fixture(scope="module")
def with_a_release(tmp_path_factory: pytest.TempPathFactory, country: Country) -> tuple[Path, Manifest]:
    """A data folder to copy, with the country as its first release."""
    folder = tmp_path_factory.mktemp("first")
    first = published(Catalog(folder / "data"), country.write(folder / "drop")).manifest
    assert first is not None
    return folder / "data", first


@pytest.fixture
def first(catalog: Catalog, with_a_release: tuple[Path, Manifest]) -> Manifest:
    """The current release, of the country as it is."""
    shutil.copytree(with_a_release[0], catalog.data)
    return with_a_release[1]


@pytest.fixture
def made(tmp_path: Path, country: Country) -> Made:
    """Writes a drop of the country with a change."""

    def write(alter: Alter) -> Path:
        changed = country.copy()
        alter(changed)
        return changed.write(tmp_path / f"drop-{len(list(tmp_path.iterdir()))}")

    return write


def _interpolate(country: Country) -> None:
    (mistake,) = [one for one in IMPLAUSIBLE_DROPS if one.kind == "a-year-interpolated"]
    mistake.alter(country)


def _turn_without_forecasts(country: Country) -> None:
    """The latest count shrinks where those before grew. There are no forecasts."""
    without_column(*FORECAST)(country)
    counts = (country.figures[name] for name in (COUNTED[-8], COUNTED[-2]))
    country.figures[COUNTED[-1]] = [
        first and last and round(last * (first / last) ** (1 / 6)) for first, last in zip(*counts, strict=True)
    ]


def published(catalog: Catalog, drop: Path, acceptance: Acceptance | None = None, **limits: float) -> PublishOutcome:
    options = PublishOptions(attribution=ATTRIBUTION, acceptance=acceptance, limits=limits)
    return publish(catalog, [str(drop)], options)


def checked(catalog: Catalog, drop: Path, **options: object) -> PublishOutcome:
    return dry_run(catalog, [str(drop)], PublishOptions(**options))  # type: ignore[arg-type]


def causes(outcome: PublishOutcome) -> dict[str, Finding]:
    return {one.rule: one for one in outcome.report.findings if one.severity == "error" and one.follows is None}


def accepted(catalog: Catalog, *words: str) -> Acceptance:
    acceptance = parse_acceptance(words, "a new base", "ann@here", catalog.current().published_at)
    assert acceptance is not None
    return acceptance


@pytest.mark.parametrize("kinds", drops_of(WRONG, WRONG_TOGETHER), ids="+".join)
def test_the_first_line_on_an_implausible_drop_names_its_cause(
    served: Catalog, made: Made, kinds: tuple[str, ...]
) -> None:
    """Of several mistakes, each is a cause of its own."""
    mistakes = [one for one in IMPLAUSIBLE_DROPS if one.kind in kinds]
    (first,) = {mistake.first for mistake in mistakes}
    outcome = checked(served, made(each(*(mistake.alter for mistake in mistakes))), compared=not first)
    assert outcome.result == "refused"
    found = [one for one in outcome.report.findings if one.severity == "error" and one.follows is None]
    by_rule = {one.rule: one for one in reversed(found)}
    assert found[0].rule in {mistake.rule for mistake in mistakes}
    for mistake in mistakes:
        cause = by_rule[mistake.rule]
        assert mistake.says in " ".join((cause.message, *cause.samples))
        assert cause.remedy


@pytest.mark.parametrize("kinds", drops_of(REAL, REAL_TOGETHER), ids="+".join)
def test_real_changes_are_published(served: Catalog, country: Country, tmp_path: Path, kinds: tuple[str, ...]) -> None:
    changes = [one for one in REAL_CHANGES if one.kind in kinds]
    changed = country.copy()
    for change in changes:
        change.alter(changed)
    drop = changed.write(tmp_path, changes[0].shape)
    for change in changes:
        change.finish(drop)
    assert errors(checked(served, drop)) == []


def test_there_are_180_implausible_drops_and_60_real_changes_each_named_once() -> None:
    for kinds, fewest in ((WRONG, 180), (REAL, 60)):
        assert len(kinds) >= fewest
        assert len(set(kinds)) == len(kinds)


@pytest.mark.parametrize("alter", [_turn_without_forecasts, _interpolate])
def test_a_first_drop_may_lack_forecasts_and_have_an_interpolated_year(
    served: Catalog, made: Made, alter: Alter
) -> None:
    assert errors(checked(served, made(alter), compared=False)) == []


def test_a_year_that_is_added_does_not_make_a_known_step_a_jump(catalog: Catalog, made: Made) -> None:
    """It is interpolated, over a year in which a state grew by 11%."""
    added, after = census(2018), (*COUNTED[COUNTED.index(census(2019)) :], *FORECAST)
    grown = scale(after, 1.09, "OH")
    assert published(catalog, made(each(grown, without_column(added)))).result == "published"
    assert errors(checked(catalog, made(grown))) == []


def test_a_row_that_is_there_twice_counts_once_in_the_comparison(served: Catalog, made: Made) -> None:
    drop = made(lambda _: None)
    once = checked(served, drop).report.comparison
    shutil.copy(drop / "population.parquet", drop / "again.parquet")
    outcome = checked(served, drop)
    assert errors(outcome) == ["duplicate-key"]
    assert outcome.report.comparison == once


def test_zeros_that_go_both_ways_are_shuffled_and_no_default(catalog: Catalog, made: Made) -> None:
    homes = (*HOMES, DEMAND)

    def with_zeros(country: Country) -> None:
        for name in homes:
            for row in country.rows_in("TX")[::4]:
                country.figures[name][row] = 0

    assert published(catalog, made(with_zeros)).result == "published"
    found = checked(catalog, made(each(with_zeros, shift(homes, "TX")))).report.findings
    rules = [one.rule for one in found if one.severity == "error"]
    assert rules[0] == "figures-misplaced"
    assert {"zeros-gained", "zeroed-figure"}.isdisjoint(rules)


def test_points_that_are_shared_already_are_no_error_again(catalog: Catalog, made: Made) -> None:
    """Somebody has accepted them."""

    def at_shared_points(country: Country) -> None:
        rows = country.rows_in("OH")
        for one, other in zip(rows[::2], rows[1::2], strict=False):
            for name in POINT:
                country.places[name][other] = country.places[name][one]

    drop = made(at_shared_points)
    found = [one for one in checked(catalog, drop).report.findings if one.severity == "error"]
    assert "shared-point" in [one.rule for one in found]
    acceptance = accept_found(found, "as measured", "ann@here", datetime(2026, 10, 5, tzinfo=UTC))
    assert published(catalog, drop, acceptance).result == "published"
    assert errors(checked(catalog, made(each(at_shared_points, noise(HOMES, 0.001))))) == []


@pytest.mark.parametrize("name", ["city_name", "county_name"])
def test_names_that_are_spelled_otherwise_are_a_warning(served: Catalog, made: Made, name: str) -> None:
    """Answers show the new spelling. Queries for a city match both."""
    outcome = checked(served, made(edit(name, str.upper, "VT")))
    found = finding(outcome, "respelled-name")
    assert (outcome.result, found.severity, found.count) == ("passed", "warning", 30)


def test_a_table_of_further_names_may_cover_a_part_of_the_country(served: Catalog, made: Made) -> None:
    """One with primary names has one for each ZIP code, unless the release before lacks them too."""

    def in_texas(*statuses: str) -> Alter:
        def alter(country: Country) -> None:
            pairs = zip(country.aliases["state_code"], country.aliases["usps_status"], strict=True)
            rows = [row for row, (state, status) in enumerate(pairs) if state == "TX" and status in statuses]
            country.aliases = {name: [values[row] for row in rows] for name, values in country.aliases.items()}

        return alter

    further, every = made(in_texas("acceptable", "unacceptable")), made(in_texas("primary", "acceptable"))
    assert errors(checked(served, further, compared=False)) == []
    assert errors(checked(served, every, compared=False)) == ["alias-missing"]
    assert errors(checked(served, every)) == ["aliases-lost"]


def test_the_country_is_plausible_by_itself(catalog: Catalog, made: Made) -> None:
    """Not a warning, with nothing to compare it with."""
    outcome = checked(catalog, made(lambda _: None))
    assert (outcome.result, outcome.report.findings) == ("passed", ())


def test_two_mistakes_have_two_causes_and_what_follows_is_folded_below_its_own(served: Catalog, made: Made) -> None:
    """Whoever mends the cause mends all of it, so nothing else is suggested."""
    outcome = checked(served, made(each(shuffle(PEOPLE, "TX"), fill("longitude", -60.0, "CT"))))
    assert set(causes(outcome)) == {"figures-misplaced", "place-outside-state"}
    refused = [one for one in outcome.report.findings if one.severity == "error"]
    followers = [one for one in refused if one.follows is not None]
    assert {"figures-moved", "leaping-figure"} <= {one.rule for one in followers if one.follows == "figures-misplaced"}
    assert {one.follows for one in followers} == {"figures-misplaced", "place-outside-state"}
    assert {one.remedy for one in followers} == {None}
    listed = [one.rule for one in refused]
    assert all(listed.index(one.follows or "") < listed.index(one.rule) for one in followers)


def test_if_the_cause_is_accepted_what_follows_stands_for_itself(served: Catalog, made: Made) -> None:
    drop = made(scale(PEOPLE, 2, "OH"))
    outcome = checked(served, drop, acceptance=accepted(served, "uniform-scale=101%"))
    assert finding(outcome, "uniform-scale").accepted == "a new base"
    stands = causes(outcome)
    assert "uniform-scale" not in stands
    assert all("--accept" in (one.remedy or "") for one in stands.values())
    assert stands


def test_accepting_what_a_cause_suggests_accepts_its_consequences(served: Catalog, made: Made) -> None:
    drop = made(scale(PEOPLE, 2, "OH"))
    outcome = checked(served, drop)
    (cause,) = causes(outcome).values()
    assert errors(outcome) != [cause.rule]
    words = [word.split()[0] for word in (cause.remedy or "").split("--accept ")[1:]]
    assert checked(served, drop, acceptance=accepted(served, *words)).result == "passed"


def test_a_uniform_change_is_reported_from_its_limit_on(served: Catalog, made: Made) -> None:
    drop = made(each(scale(COUNTED[:6], 1.028, "OH"), scale(COUNTED[:6], 1.032, "CT")))
    found = finding(checked(served, drop), "uniform-scale")
    assert (found.severity, set(found.measured_in)) == ("error", {"CT"})


def test_figures_that_are_still_open_may_move_twice_as_far(served: Catalog, made: Made) -> None:
    """Open from the first open year on. Each state's total of one year moves by another share."""
    moves = (("TX", OPEN - 1, 1.05), ("CA", OPEN - 1, 1.07), ("OH", OPEN, 1.07), ("CT", OPEN, 1.11), ("FL", OPEN, 1.13))
    drop = made(each(*(noise(census(year), 0.02, state, mean=share) for state, year, share in moves)))
    found = finding(checked(served, drop), "total-drift")
    assert (found.severity, set(found.measured_in)) == ("error", {"CA", "FL"})


@pytest.mark.parametrize(("share", "refused"), [(0.38, False), (0.42, True)])
def test_in_a_state_ten_times_the_share_may_fail(served: Catalog, made: Made, share: float, refused: bool) -> None:
    """Of points outside their state here, with a limit that the country as a whole keeps."""
    outcome = checked(served, made(fill("longitude", -60.0, "NM", share=share)), limits={"place-outside-state": 0.04})
    assert ("place-outside-state" in errors(outcome)) is refused


def test_a_setting_moves_a_limit_and_another_a_severity(served: Catalog, made: Made) -> None:
    drop = made(noise(PEOPLE, 0.02, "CT", mean=1.05))
    for limit, found in ((0.03, []), (0.02, ["total-drift"])):  # twice as much in a state
        assert errors(checked(served, drop, limits={"total-drift": limit})) == found
    outcome = checked(served, drop, limits={"total-drift": 0.02}, severities={"total-drift": "warning"})
    assert (outcome.result, finding(outcome, "total-drift").severity) == ("passed", "warning")


def test_a_country_of_fewer_than_a_hundred_zip_codes_is_not_judged(catalog: Catalog, made: Made) -> None:
    """Shares and likenesses of so few say nothing."""
    small = without("TX", "CA", "OH", "FL", "CT", "NM", "AE")
    assert errors(published(catalog, made(small))) == []
    assert errors(checked(catalog, made(each(small, shuffle(PEOPLE))))) == []


def test_an_acceptance_lets_through_what_it_is_bounded_to(catalog: Catalog, first: Manifest, made: Made) -> None:
    """Up to the bounds that the remedy names, and not what goes further."""
    drop = made(noise(PEOPLE, 0.02, "CT", mean=1.065))
    refused = published(catalog, drop)
    assert (refused.result, set(causes(refused))) == ("refused", {"total-drift"})
    words = re.findall(r"--accept (\S+)", finding(refused, "total-drift").remedy or "")
    acceptance = accepted(catalog, *words)
    further = made(noise(PEOPLE, 0.02, "CT", mean=1.09))
    assert published(catalog, further, acceptance).result == "refused"
    assert published(catalog, drop, acceptance).result == "published"
    assert catalog.current().acceptance == acceptance
    (kept,) = [one for one in catalog.findings(catalog.current().id).findings if one.rule == "total-drift"]
    assert (kept.severity, kept.accepted) == ("warning", "a new base")


def lost(months: int) -> Alter:
    """2.4% less each month than at first, with noise of the month's own."""
    return noise(PEOPLE, 0.01, mean=0.976**months, seed=months)


def test_losses_of_each_month_add_up_to_slow_drift(catalog: Catalog, first: Manifest, made: Made) -> None:
    """No month's loss is reported; that since the oldest release is. If it is accepted, it is measured from there on.

    To accept drift each month, although there is none beyond its limit, changes nothing.
    """
    for months in (1, 2):
        assert errors(published(catalog, made(lost(months)), accepted(catalog, "slow-drift=0%"))) == [], months
    drop = made(lost(3))
    refused = published(catalog, drop)
    assert set(causes(refused)) == {"slow-drift"}
    assert "in the country: " in finding(refused, "slow-drift").samples[0]
    assert published(catalog, drop, accepted(catalog, "slow-drift=8%")).result == "published"
    assert errors(published(catalog, made(lost(4)))) == []


def test_zip_codes_that_lose_a_figure_each_month_add_up_to_slow_loss(
    catalog: Catalog, first: Manifest, made: Made
) -> None:
    """It says since which release."""
    for months in (1, 2):
        drop = made(lose(COUNTED[3], share=0.009 * months))
        assert errors(published(catalog, drop)) == [], months
    refused = published(catalog, made(lose(COUNTED[3], share=0.009 * 3)))
    assert set(causes(refused)) == {"slow-loss"}
    assert f"since {first.id}" in finding(refused, "slow-loss").message


def test_a_damaged_baseline_is_reported_and_stops_nothing(catalog: Catalog, first: Manifest, made: Made) -> None:
    """Drift of long ago is not known then; the current release is still compared."""
    assert errors(published(catalog, made(noise(COUNTED, 0.002)))) == []
    table_file(catalog.folder(first.id) / "tables", "population").write_bytes(b"PAR1")
    outcome = published(catalog, made(noise(FORECAST, 0.002)))
    assert outcome.result == "published"
    reported = finding(outcome, "unreadable-baseline")
    assert reported.severity == "warning"
    assert first.id in reported.message
