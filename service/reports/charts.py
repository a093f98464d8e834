"""Geometry of the charts and the map on a page. The templates beside this module draw them."""

import math
from collections.abc import Collection, Mapping, Sequence

import msgspec

Pair = tuple[int | None, int | None]  # before and now; None if there is none
Point = tuple[float, float]  # x and y, in SVG units

_LEVELS = (0.001, 0.01, 0.05, 0.2)  # shares from which a tile's colour deepens
# What each colour of the map means, from the palest.
SCALE = (f"under {_LEVELS[0]:.1%}", *(f"from {100 * level:g}%" for level in _LEVELS))

_MAP_COLUMNS = 12
# The positions of the states' tiles; territories and the military are at the bottom.
_MAP = (
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


class Bar(msgspec.Struct, frozen=True):
    """One bar of a chart, with its number."""

    kind: str
    value: int | None  # None: no bar
    share: float  # of the longest bar in the chart


Bars = dict[str, tuple[Bar, ...]]


def bars(figures: Mapping[str, Sequence[int | None]], kinds: tuple[str, ...] = ("old", "new")) -> Bars:
    """Returns the bars of each name: one for each of `kinds`."""
    most = max((value for values in figures.values() for value in values if value), default=1)
    return {
        name: tuple(Bar(kind, value, (value or 0) / most) for kind, value in zip(kinds, values, strict=True))
        for name, values in figures.items()
    }


class LineChart(msgspec.Struct, frozen=True, kw_only=True):
    """Totals by year, in SVG units."""

    width: float = 560
    height: float = 284
    left: float = 72  # the edges of the plot
    right: float = 540
    top: float = 12
    bottom: float = 254
    ticks: list[tuple[float, str]]  # y and label
    years: list[tuple[float, str]]  # x and label
    old: list[Point]
    new: list[Point]


def population_lines(years: Mapping[int, Pair]) -> LineChart:
    """Returns the chart of national totals by year."""
    values = [value for pair in years.values() for value in pair if value is not None]
    ticks = _ticks(min(values), max(values))
    plot = LineChart(ticks=[], years=[], old=[], new=[])
    first, last = min(years), max(years)

    def across(year: int) -> float:
        return plot.left + (plot.right - plot.left) * (year - first) / max(1, last - first)

    def down(value: float) -> float:
        return plot.bottom - (plot.bottom - plot.top) * (value - ticks[0]) / (ticks[-1] - ticks[0])

    old, new = (
        [(across(year), down(value)) for year, pair in sorted(years.items()) if (value := pair[at]) is not None]
        for at in (0, 1)
    )
    return LineChart(
        ticks=[(down(tick), _short(tick, ticks[1] - ticks[0])) for tick in ticks],
        years=[(across(year), str(year)) for year in range(first, last + 1, max(1, math.ceil((last - first) / 8)))],
        old=old,
        new=new,
    )


def tile_places(states: Collection[str]) -> dict[str, tuple[int, int]]:
    """Returns column and row on the map, from 1, of all states that exist, and of up to 12 others."""
    places = {
        line[3 * at : 3 * at + 2]: (at + 1, row)
        for row, line in enumerate(_MAP, start=1)
        for at in range(_MAP_COLUMNS)
        if line[3 * at] != " "
    }
    others = sorted(set(states) - set(places))[:_MAP_COLUMNS]
    return places | {state: (column, len(_MAP) + 1) for column, state in enumerate(others, start=1)}


def level(share: float) -> int:
    """Returns the position of a share in `SCALE`."""
    return sum(share >= step for step in _LEVELS)


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
