"""Charts are well-formed SVG of their own, tell old from new without colour, and say in words what they show."""

from xml.etree.ElementTree import Element, fromstring

import pytest

from service.reports import charts
from warehouse.schema.states import STATES

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: Element) -> list[str]:
    return [one.text or "" for one in svg.iter(f"{SVG}text")]


def of_class(svg: Element, kind: str) -> list[Element]:
    return [one for one in svg.iter() if one.get("class") == kind]


@pytest.mark.parametrize(
    "chart",
    [
        charts.population_lines({2010: (5, 6), 2011: (None, 7)}),
        charts.pair_bars("Homes", {"homes": (5, None)}),
        charts.state_bars({"AL": 1}, {"NY": 2}),
        charts.step_bars("Changes", {"same": 5}),
        charts.state_tiles("States", {"AL": charts.Tile(0.5, "50%", "half of it")}),
    ],
    ids=["lines", "bars", "states", "steps", "tiles"],
)
def test_a_chart_is_a_picture_with_title_and_description(chart: str) -> None:
    svg = fromstring(chart)
    assert (svg.tag, svg.get("role")) == (f"{SVG}svg", "img")
    assert [child.tag for child in svg[:2]] == [f"{SVG}title", f"{SVG}desc"]
    assert all(child.text for child in svg[:2])


def test_lines_have_a_dot_for_each_year_that_has_figures() -> None:
    years = {2010: (300_000_000, 310_000_000), 2012: (320_000_000, None), 2013: (None, 330_000_000)}
    svg = fromstring(charts.population_lines(years))
    assert (len(of_class(svg, "dot old")), len(of_class(svg, "dot new"))) == (2, 2)
    assert {"300 M", "330 M", "2010", "2013"} <= set(texts(svg))
    assert "0" in texts(fromstring(charts.population_lines({2023: (0, 10)})))
    description = svg.findtext(f"{SVG}desc") or ""
    assert "2012: 320,000,000 before, none now" in description


@pytest.mark.parametrize(
    "years",
    [{2023: (5, 5)}, {2023: (0, 0)}, {2023: (None, 1)}, {2020: (1, 10**12), 2021: (3, 4)}, {2020: (10**9, 10**9 + 1)}],
)
def test_every_dot_lies_inside_the_picture(years: dict[int, charts.Pair]) -> None:
    svg = fromstring(charts.population_lines(years))
    width, height = (float(part) for part in (svg.get("viewBox") or "").split()[2:])
    for dot in svg.iter(f"{SVG}circle"):
        assert 0 <= float(dot.get("cx") or -1) <= width
        assert 0 <= float(dot.get("cy") or -1) <= height


def test_old_bars_are_hatched_and_bars_are_as_long_as_their_figures() -> None:
    svg = fromstring(charts.pair_bars("Homes", {"homes": (100, 50), "demand": (None, 100)}))
    (old,), new = of_class(svg, "bar old"), of_class(svg, "bar new")
    assert "url(#hatched)" in (old.get("style") or "")
    assert [one.get("style") for one in new] == [None, None]
    assert float(new[0].get("width") or 0) * 2 == pytest.approx(float(old.get("width") or 0), abs=0.2)
    assert texts(svg) == ["homes", "100", "50", "demand", "none", "100"]


def test_lost_goes_left_and_gained_goes_right_with_signs() -> None:
    svg = fromstring(charts.state_bars({"AL": 3}, {"NY": 6}))
    (gained,), (lost,) = of_class(svg, "bar new"), of_class(svg, "bar old")
    assert float(lost.get("x") or 0) + float(lost.get("width") or 0) < float(gained.get("x") or 0)
    assert texts(svg)[2:] == ["NY", "−6", "AL", "+3"]


def test_states_beyond_the_height_of_a_chart_are_added_up() -> None:
    states = {f"{first}{second}": 1 for first in "ABCDEF" for second in "VWXYZ"}
    shown = texts(fromstring(charts.state_bars(states, {"AV": 5})))
    assert shown[2:5] == ["AV", "−5", "+1"]
    assert shown[-2:] == ["others", "+6"]


def test_a_name_is_text_whatever_it_holds() -> None:
    svg = fromstring(charts.pair_bars("Homes", {"<script>&\"'": (1, 2)}))
    assert texts(svg)[0] == "<script>&\"'"
    assert "script" not in {one.tag for one in svg.iter()}


def test_every_state_has_a_tile_of_its_own_on_the_map() -> None:
    svg = fromstring(charts.state_tiles("States", {one.code: charts.Tile(0, "0%", "") for one in STATES}))
    places = [(tile.get("x"), tile.get("y")) for tile in svg.iter(f"{SVG}rect")]
    assert len(places) == len(set(places)) == len(STATES)
    assert of_class(svg, "tile absent") == []


def test_the_more_changed_the_deeper_the_colour() -> None:
    shares = {"AL": 0.0, "GA": 0.005, "FL": 0.03, "TX": 0.1, "NV": 1.0}
    svg = fromstring(charts.state_tiles("States", {code: charts.Tile(share, "", "") for code, share in shares.items()}))
    levels = {
        (group.findtext(f"{SVG}title") or "")[:2]: tile.get("class")
        for group in svg.iter(f"{SVG}g")
        for tile in group.iter(f"{SVG}rect")
    }
    assert [levels[code] for code in shares] == [f"tile level{level}" for level in range(5)]


def test_states_that_do_not_exist_stand_below_the_map_and_do_not_fill_it() -> None:
    codes = [f"X{letter}" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"]
    svg = fromstring(charts.state_tiles("States", {code: charts.Tile(0.5, "50%", "") for code in ["", *codes]}))
    assert len(of_class(svg, "tile level4")) == 12
    _, _, _, height = (float(part) for part in (svg.get("viewBox") or "").split())
    assert max(float(tile.get("y") or 0) for tile in of_class(svg, "tile level4")) < height
