"""The geometry of charts: everything lies inside, lengths follow numbers, and every state has its place."""

import pytest

from service.reports import charts
from warehouse.schema.states import STATES


def test_ticks_and_years_have_labels() -> None:
    plot = charts.population_lines({2010: (300_000_000, 310_000_000), 2013: (None, 330_000_000)})
    assert [label for _, label in plot.ticks] == ["300 M", "310 M", "320 M", "330 M"]
    assert [label for _, label in plot.years] == ["2010", "2011", "2012", "2013"]
    assert (len(plot.old), len(plot.new)) == (1, 2)
    assert charts.population_lines({2023: (0, 10)}).ticks[0][1] == "0"


@pytest.mark.parametrize(
    "years",
    [{2023: (5, 5)}, {2023: (0, 0)}, {2023: (None, 1)}, {2020: (1, 10**12), 2021: (3, 4)}, {2020: (10**9, 10**9 + 1)}],
)
def test_every_dot_lies_inside_the_plot(years: dict[int, charts.Pair]) -> None:
    plot = charts.population_lines(years)
    for x, y in (*plot.old, *plot.new):
        assert plot.left <= x <= plot.right
        assert plot.top <= y <= plot.bottom


def test_bars_are_as_long_as_their_figures() -> None:
    bars = charts.bars({"homes": (100, 50), "demand": (None, 0)})
    assert bars["homes"] == (charts.Bar("old", 100, 1.0), charts.Bar("new", 50, 0.5))
    assert bars["demand"] == (charts.Bar("old", None, 0.0), charts.Bar("new", 0, 0.0))
    assert charts.bars({"same": (0,)}, ("new",)) == {"same": (charts.Bar("new", 0, 0.0),)}


def test_every_state_has_a_place_of_its_own_on_the_map() -> None:
    places = charts.tile_places([])
    assert set(places) == {one.code for one in STATES}
    assert len(set(places.values())) == len(STATES)


def test_states_that_do_not_exist_stand_below_the_map_and_do_not_fill_it() -> None:
    codes = ["", *(f"X{letter}" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ")]
    places = charts.tile_places(["AL", *codes])
    below = [place for state, place in places.items() if state in codes]
    assert below == [(column, 10) for column in range(1, 13)]
    assert max(row for state, (_, row) in places.items() if state not in codes) == 9


def test_the_more_changed_the_deeper_the_colour() -> None:
    assert [charts.level(share) for share in (0.0, 0.005, 0.03, 0.1, 1.0)] == [0, 1, 2, 3, 4]
    assert len(charts.SCALE) == 5
