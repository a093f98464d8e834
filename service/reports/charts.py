"""Small charts as inline SVG. Old and new differ in shape and colour, and every chart has a title.

Charts are built as XML trees, so that every name is escaped. Their colours come from the page (html_page.html).
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, tostring

Pair = tuple[int | None, int | None]  # before and now; None if there is none

_WIDTH = 560  # of a chart, in SVG units
_STATES = 24  # most rows of a chart; one more row has the sum of the rest

_LEVELS = (0.001, 0.01, 0.05, 0.2)  # shares from which a tile's colour deepens
_DEEP = 2  # above this level, a colour is dark enough for pale text
_MAP_COLUMNS = 12
# The positions of the states' tiles; territories and the military are at the bottom.
_MAP = tuple(
    tuple(line[at : at + 3].strip() for at in range(0, 3 * _MAP_COLUMNS, 3))
    for line in (
        "AK                               ME ",
        "                  WI          VT NH ",
        "   WA ID MT ND MN IL MI    NY MA    ",
        "   OR NV WY SD IA IN OH PA NJ CT RI ",
        "   CA UT CO NE MO KY WV VA MD DE    ",
        "      AZ NM KS AR TN NC SC DC       ",
        "            OK LA MS AL GA          ",
        "HI          TX             FL       ",
        "AS GU MP PW FM MH AA AE AP    PR VI ",
    )
)


def population_lines(years: Mapping[int, Pair]) -> str:
    """Returns a chart of national totals by year: old ones as a broad pale line, new ones as a thin line with dots."""
    svg = _svg(284, "Population by year", _ends(years))
    values = [value for pair in years.values() for value in pair if value is not None]
    ticks = _ticks(min(values), max(values))
    left, right, top, bottom = 62.0, _WIDTH - 20.0, 12.0, 254.0
    first, last = min(years), max(years)

    def across(year: int) -> float:
        return left + (right - left) * (year - first) / max(1, last - first)

    def down(value: float) -> float:
        return bottom - (bottom - top) * (value - ticks[0]) / (ticks[-1] - ticks[0])

    for tick in ticks:
        _line(svg, left, down(tick), right, down(tick), "grid")
        _text(svg, left - 8, down(tick) + 4, _short(tick, ticks[1] - ticks[0]), "end")
    for year in range(first, last + 1, max(1, math.ceil((last - first) / 8))):
        _text(svg, across(year), bottom + 20, str(year), "middle")
    _series(svg, [(across(year), down(old)) for year, (old, _) in sorted(years.items()) if old is not None], "old")
    _series(svg, [(across(year), down(new)) for year, (_, new) in sorted(years.items()) if new is not None], "new")
    return tostring(svg, encoding="unicode")


def pair_bars(title: str, figures: Mapping[str, Pair]) -> str:
    """Returns a chart with two bars for each name: the old one (hatched) above the new one (solid)."""
    row, label = 52, 205
    svg = _svg(row * len(figures) + 8, title, _ends(figures))
    _hatching(svg)
    most = max((value for pair in figures.values() for value in pair if value), default=1)
    for at, (name, pair) in enumerate(figures.items()):
        _text(svg, label - 10, at * row + 29, name, "end")
        for below, value, kind in ((8, pair[0], "old"), (28, pair[1], "new")):
            width = (_WIDTH - label - 90) * (value or 0) / most
            _bar(svg, label, at * row + below, width, 16, kind)
            shown = "none" if value is None else f"{value:,}"
            _text(svg, label + width + 6, at * row + below + 13, shown, "start", "" if value else "quiet")
    return tostring(svg, encoding="unicode")


def step_bars(title: str, steps: Mapping[str, int]) -> str:
    """Returns a histogram: a bar for each step, with its number."""
    row, label = 22, 130
    svg = _svg(row * len(steps) + 8, title, "; ".join(f"{step}: {number:,}" for step, number in steps.items()))
    most = max(1, *steps.values())
    for at, (step, number) in enumerate(steps.items()):
        top = 4 + at * row
        width = (_WIDTH - label - 80) * number / most
        _text(svg, label - 10, top + 13, step, "end")
        _bar(svg, label, top, width, 16, "new")
        _text(svg, label + width + 6, top + 13, f"{number:,}", "start", "" if number else "quiet")
    return tostring(svg, encoding="unicode")


class Tile(NamedTuple):
    """One state on a map."""

    share: float  # how much changed; it decides the colour
    label: str  # the share in a few characters
    title: str  # the details


def state_tiles(title: str, tiles: Mapping[str, Tile]) -> str:
    """Returns a map with a tile for each state: its code and label, on a colour that deepens with the share."""
    places = {state: (column, line) for line, states in enumerate(_MAP) for column, state in enumerate(states) if state}
    others = sorted(set(tiles) - set(places))[:_MAP_COLUMNS]
    places |= {state: (column, len(_MAP)) for column, state in enumerate(others)}
    width, height = _WIDTH / _MAP_COLUMNS, 42
    description = "; ".join(f"{state or 'none'} {tiles[state].label}" for state in sorted(tiles))
    svg = _svg(height * (len(_MAP) + bool(others)), title, description)
    for state, (column, line) in places.items():
        tile = tiles.get(state)
        group = SubElement(svg, "g")
        SubElement(group, "title").text = f"{state or '(none)'}: {tile.title if tile else 'not in either release'}"
        level = sum(tile.share >= step for step in _LEVELS) if tile else 0
        left, top = column * width, line * height
        place = {"x": f"{left + 1:.1f}", "y": f"{top + 1}", "width": f"{width - 2:.1f}", "height": f"{height - 2}"}
        SubElement(group, "rect", {**place, "rx": "3", "class": f"tile level{level}" if tile else "tile absent"})
        kind = "deep" if level > _DEEP else "" if tile else "quiet"
        _text(group, left + width / 2, top + 17, state or "–", "middle", kind)
        _text(group, left + width / 2, top + 33, tile.label if tile else "", "middle", f"small {kind}".strip())
    return tostring(svg, encoding="unicode")


def state_bars(gained: Mapping[str, int], lost: Mapping[str, int]) -> str:
    """Returns a chart of ZIP codes by state: lost ones to the left (hatched), gained ones to the right (solid)."""
    rows = _by_state(gained, lost)
    row, centre = 22, _WIDTH / 2
    title = f"{sum(gained.values()):,} ZIP codes gained, {sum(lost.values()):,} lost"
    svg = _svg(row * len(rows) + 30, "ZIP codes gained and lost by state", title)
    _hatching(svg)
    _text(svg, centre - 34, 16, "← lost", "end", "quiet")
    _text(svg, centre + 34, 16, "gained →", "start", "quiet")
    most = max(max(gain, loss) for _, gain, loss in rows)
    for at, (state, gain, loss) in enumerate(rows):
        top = 26 + at * row
        _text(svg, centre, top + 13, state, "middle")
        for number, sign, anchor in ((loss, -1, "end"), (gain, 1, "start")):
            width = 180 * number / most
            begin = centre + sign * 28
            _bar(svg, min(begin, begin + sign * width), top, width, 16, "old" if sign < 0 else "new")
            if number:
                _text(svg, begin + sign * (width + 6), top + 13, f"{'+' if sign > 0 else '−'}{number:,}", anchor)
    return tostring(svg, encoding="unicode")


def _by_state(gained: Mapping[str, int], lost: Mapping[str, int]) -> Sequence[tuple[str, int, int]]:
    """Returns (state, gained, lost), largest first. States that do not fit the chart are summed up in the last row."""
    rows = [(state, gained.get(state, 0), lost.get(state, 0)) for state in {*gained, *lost}]
    rows.sort(key=lambda entry: (-entry[1] - entry[2], entry[0]))
    shown, rest = rows[:_STATES], rows[_STATES:]
    if rest:
        shown.append(("others", sum(gain for _, gain, _ in rest), sum(loss for _, _, loss in rest)))
    return shown


def _ends(pairs: Mapping[int, Pair] | Mapping[str, Pair]) -> str:
    """Returns the chart in words, for screen readers; the page's tables have all numbers."""

    def in_words(pair: Pair) -> str:
        old, new = ("none" if value is None else f"{value:,}" for value in pair)
        return f"{old} before, {new} now"

    return "; ".join(f"{name}: {in_words(pair)}" for name, pair in pairs.items())


def _ticks(low: float, high: float) -> list[float]:
    """Returns four to seven round values that enclose `low` to `high`."""
    rough = max(high - low, abs(high) * 0.001, 1) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [at * step for at in range(first, max(last, first + 1) + 1)]


def _short(value: float, step: float) -> str:
    """Formats 315,000,000 as 315 M, with enough decimals to distinguish ticks."""
    if not value:
        return "0"
    scale, unit = next(((scale, unit) for scale, unit in ((1e6, " M"), (1e3, " k")) if step >= scale / 100), (1.0, ""))
    decimals = max(0, -math.floor(math.log10(step / scale)))
    return f"{value / scale:,.{decimals}f}{unit}"


def _svg(height: int, title: str, description: str) -> Element:
    attributes = {"viewBox": f"0 0 {_WIDTH} {height}", "role": "img", "xmlns": "http://www.w3.org/2000/svg"}
    svg = Element("svg", attributes)
    SubElement(svg, "title").text = title
    SubElement(svg, "desc").text = description
    return svg


def _series(svg: Element, points: Sequence[tuple[float, float]], kind: str) -> None:
    if points:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        SubElement(svg, "polyline", {"points": path, "class": f"line {kind}"})
    for x, y in points:
        radius = "5" if kind == "old" else "3"
        SubElement(svg, "circle", {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": radius, "class": f"dot {kind}"})


def _bar(svg: Element, x: float, y: float, width: float, height: float, kind: str) -> None:
    if not width:
        return
    place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{max(width, 1):.1f}", "height": f"{height:.1f}"}
    fill = {"style": "fill: url(#hatched)"} if kind == "old" else {}
    SubElement(svg, "rect", {**place, "class": f"bar {kind}", **fill})


def _hatching(svg: Element) -> None:
    lines = {"width": "6", "height": "6", "patternUnits": "userSpaceOnUse", "patternTransform": "rotate(45)"}
    pattern = SubElement(SubElement(svg, "defs"), "pattern", {"id": "hatched", **lines})
    SubElement(pattern, "rect", {"width": "6", "height": "6", "class": "hatch-ground"})
    SubElement(pattern, "rect", {"width": "2.5", "height": "6", "class": "hatch-line"})


def _line(svg: Element, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
    ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    SubElement(svg, "line", {**{name: f"{value:.1f}" for name, value in ends.items()}, "class": kind})


def _text(svg: Element, x: float, y: float, text: str, anchor: str, kind: str = "") -> None:
    node = SubElement(svg, "text", {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor})
    if kind:
        node.set("class", kind)
    node.text = text
