"""Two releases state by state: rows, key figures, what moved most, and which ZIP codes are concerned."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.drops import LOCATIONS, POPULATION, homes, location, people
from tests.warehouse.compare.test_release_comparison import differing, differing_drops
from tests.warehouse.comparisons import figure
from warehouse.compare.state_comparison import key_figures
from warehouse.schema.comparison import Comparison, StateChange

SPRINGFIELD = [location(f"{zip_code}", "Springfield", "IL") for zip_code in range(62701, 62705)]


def state(comparison: Comparison, code: str) -> StateChange:
    return next(one for one in comparison.states if one.state == code)


def test_a_state_has_its_rows_of_each_table_before_and_after(tmp_path: Path) -> None:
    """Alabama gains a ZIP code with a year; Missouri loses one that had a year."""
    places = [*(row for row in LOCATIONS if row["zip_code"] != "63101"), location("36437", "Jackson", "AL")]
    rows = [row for row in POPULATION if row["zip_code"] != "63101"]
    found = differing(tmp_path, locations=places, population=[*rows, people("36437", 2023, 5)])
    assert state(found, "AL").rows == {"locations": (1, 2), "population": (2, 3), "housing": (1, 1), "aliases": (1, 1)}
    assert state(found, "MO").rows["locations"] == (3, 2)
    assert state(found, "MO").rows["population"] == (1, 0)
    assert (state(found, "AL").gained, state(found, "MO").lost) == (1, 1)
    assert [one.state for one in found.states] == sorted(one.state for one in found.states)


def test_answers_are_counted_where_a_figure_or_the_location_differs(tmp_path: Path) -> None:
    places = [*LOCATIONS[:-2], location("58601", "Dickinson", "ND", latitude=46.9), LOCATIONS[-1]]
    rows = [people("36436", 2023, 784), *POPULATION[1:]]
    found = differing(tmp_path, locations=places, population=[row for row in rows if row["zip_code"] != "90028"])
    assert (state(found, "AL").changed, state(found, "AL").without) == (1, 0)
    assert (state(found, "ND").changed, state(found, "ND").without) == (1, 0)
    assert (state(found, "CA").changed, state(found, "CA").without) == (1, 1)
    assert state(found, "CA").lost_share == 0.5
    assert state(found, "NY").changed == 0


def test_what_was_shuffled_has_moved_though_its_total_stays(tmp_path: Path) -> None:
    rows = [people(place["zip_code"], 2023, number * 1000) for number, place in enumerate(SPRINGFIELD, 1)]
    turned = [people(place["zip_code"], 2023, 5000 - number * 1000) for number, place in enumerate(SPRINGFIELD, 1)]
    places = [*LOCATIONS, *SPRINGFIELD]
    found = differing_drops(
        tmp_path, {"locations": places, "population": rows}, {"locations": places, "population": turned}
    )
    most = state(found, "IL").most_moved
    assert most is not None
    assert (most.figure, most.old_total, most.new_total, most.moved) == ("population 2023", 10000, 10000, 8000)
    assert (most.moved_share, most.drift) == (0.8, 0.0)


def test_the_figure_that_moved_most_is_shown_besides_the_key_figures(tmp_path: Path) -> None:
    """Not if a few people moved: of small totals, any change is a large share."""
    old = [people("62701", 2012, 4000), people("62701", 2023, 4000), people("62702", 2011, 9)]
    new = [people("62701", 2012, 3000), people("62701", 2023, 3999), people("62702", 2011, 1)]
    places = [*LOCATIONS, *SPRINGFIELD]
    found = differing_drops(
        tmp_path, {"locations": places, "population": old}, {"locations": places, "population": new}
    )
    assert [one.figure for one in state(found, "IL").figures] == ["population 2012", "population 2023"]
    assert state(found, "IL").most_moved == state(found, "IL").figures[0]


def test_key_figures_are_the_latest_counted_ones_that_both_releases_have() -> None:
    figures = (
        figure("population 2021"),
        figure("population 2023", new_count=0),
        figure("population 2035"),
        figure("tot_home_available_2022"),
        figure("tot_home_available_2023", old_count=0),
        figure("est_total_home_demand_2030"),
    )
    expected = ("population 2021", "tot_home_available_2022", "est_total_home_demand_2030")
    assert key_figures(figures, 2024) == expected


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ((), ()),
        ((figure("population 2030"),), ("population 2030",)),
        ((figure("population 2020", new_count=0),), ("population 2020",)),
    ],
    ids=["none", "only forecasts", "only one that is gone"],
)
def test_a_release_without_such_figures_has_what_there_is(figures: Any, expected: tuple[str, ...]) -> None:
    assert key_figures(figures, 2024) == expected


def test_states_that_a_drop_made_up_do_not_fill_a_report(tmp_path: Path) -> None:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    codes = [f"{first}{second}" for first in letters for second in letters][:200]
    places = [location(f"{10000 + number}", "Nowhere", code) for number, code in enumerate(codes)]
    many = [location(f"{20000 + number}", "Somewhere", "ZZ") for number in range(3)]
    found = differing(
        tmp_path, locations=[*places, *many], housing=[homes("10000")], population=[people("10000", 2023, 5)]
    )
    assert len(found.states) == 100
    assert state(found, "ZZ").gained == 3
    assert found.answers is not None
    assert found.answers.gained == 203
