"""The picture of a comparison: everybody's rate over that of one peer, with the spread over the rounds, as SVG.

Colours follow the reader's choice of light or dark, by a style inside the picture.
"""

import statistics
from collections.abc import Sequence
from html import escape

import msgspec

from tests.bench.contenders import BASES
from tests.bench.report import Headers, Results, Series

WIDTH, _LABELS, _FIGURES = 860, 250, 150
_BAR, _GAP, _HEADING = 13, 10, 46
_STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328; }
  .title { font-weight: 600; } .quiet { fill: #59636e; font-size: 12px; }
  .ours { fill: #0969da; } .peer { fill: #8c959f; } .same { opacity: .5; }
  .spread { stroke: #1f2328; stroke-width: 1.5; } .one { stroke: #59636e; stroke-dasharray: 3 3; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .quiet { fill: #9198a1; }
    .ours { fill: #4493f8; } .peer { fill: #6e7681; }
    .spread { stroke: #e6edf3; } .one { stroke: #9198a1; }
  }
"""
_HEADINGS = {
    "hit": "ZIP codes requested before: answers per second, {} = 1",
    "miss": "ZIP codes requested for the first time, all distinct: answers per second, {} = 1",
}


class Bar(msgspec.Struct, frozen=True):
    """`name` over the base: median, least and most of all rounds."""

    name: str
    headers: Headers
    ours: bool
    median: float
    least: float
    most: float


def draw(results: Results) -> str:
    """A whole SVG file; with what was not measured left out."""
    parts: list[str] = []
    top = 0.0
    for group, heading in _HEADINGS.items():
        base = _base(results, group)
        bars = bars_of(
            [one for one in results.series if one.group == group], base, {pair.ours for pair in results.ratios}
        )
        if bars:
            parts += _panel(bars, heading.format(base), top)
            top += _height(bars)
    legend = (
        f"Upper bar: headers that differ on each request; lower: the same bytes. Line: least to most of "
        f"{results.rounds} rounds. One core each; {results.made_at[:10]}."
    )
    parts.append(f'<text class="quiet" x="0" y="{top + 16:.0f}">{escape(legend)}</text>')
    return picture("Answers per second beside peers", parts, top + 26)


def picture(title: str, parts: Sequence[str], height: float, style: str = "") -> str:
    """A whole SVG file of these parts."""
    size = f'width="{WIDTH}" height="{height:.0f}" viewBox="0 0 {WIDTH} {height:.0f}"'
    head = f"<title>{title}</title><style>{_STYLE}{style}</style>"
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">{head}', *parts, "</svg>\n"])


def bars_of(series: Sequence[Series], base: str, ours: set[str]) -> list[Bar]:
    """Fastest first, both sorts of headers of one contender beside each other."""
    bases = {one.headers: one for one in series if one.name == base}
    bars = []
    for one in series:
        rounds = zip(one.samples, bases[one.headers].samples, strict=True)
        ratios = [sample.rate / other.rate for sample, other in rounds]
        bars.append(Bar(one.name, one.headers, one.name in ours, statistics.median(ratios), min(ratios), max(ratios)))
    best = {bar.name: max(other.median for other in bars if other.name == bar.name) for bar in bars}
    return sorted(bars, key=lambda bar: (-best[bar.name], bar.name, bar.headers == "same"))


def _base(results: Results, group: str) -> str:
    names = [one.name for one in results.series if one.group == group]
    return BASES[group] if BASES[group] in names or not names else names[0]


def _height(bars: list[Bar]) -> float:
    return _HEADING + len(bars) * _BAR + len(bars) / 2 * _GAP + 8


def _panel(bars: list[Bar], heading: str, top: float) -> list[str]:
    scale = (WIDTH - _LABELS - _FIGURES) / max(bar.most for bar in bars)
    parts = [f'<text class="title" x="0" y="{top + 20:.0f}">{escape(heading)}</text>']
    y = top + _HEADING - 10
    for number, bar in enumerate(bars):
        if number % 2 == 0:
            name = f"this project: {bar.name}" if bar.ours else bar.name
            parts.append(f'<text x="{_LABELS - 10}" y="{y + _BAR + 4:.0f}" text-anchor="end">{escape(name)}</text>')
        parts += _bar(bar, y, scale)
        y += _BAR + (_GAP if number % 2 else 0)
    one = _LABELS + scale
    parts.append(f'<line class="one" x1="{one:.1f}" x2="{one:.1f}" y1="{top + _HEADING - 14:.0f}" y2="{y - 4:.0f}"/>')
    return parts


def _bar(bar: Bar, y: float, scale: float) -> list[str]:
    kind = f"{'ours' if bar.ours else 'peer'}{' same' if bar.headers == 'same' else ''}"
    middle = y + _BAR / 2
    least, most = _LABELS + bar.least * scale, _LABELS + bar.most * scale
    spread = "" if bar.least == bar.most else f" ({_short(bar.least)} - {_short(bar.most)})"
    figures = f"{_short(bar.median)}{spread}"
    return [
        f'<rect class="{kind}" x="{_LABELS}" y="{y:.1f}" width="{bar.median * scale:.1f}" height="{_BAR - 1}"/>',
        f'<line class="spread" x1="{least:.1f}" x2="{most:.1f}" y1="{middle:.1f}" y2="{middle:.1f}"/>',
        f'<text class="quiet" x="{most + 8:.1f}" y="{y + _BAR - 1:.1f}">{figures}</text>',
    ]


def _short(ratio: float) -> str:
    return f"{ratio:.3f}" if ratio < 0.1 else f"{ratio:.2f}"
