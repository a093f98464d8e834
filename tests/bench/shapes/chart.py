"""The picture of the shapes: for each the ratio of rates as a bar, its floor as a mark, and p99 beside it, as SVG."""

from html import escape

from tests.bench.chart import WIDTH, picture
from tests.bench.shapes.results import Measured, ShapesResults

_LABELS, _FIGURES = 360, 300
_ROW, _BAR, _TOP = 24, 14, 56
# A bar that is longer than this many times the peer is cut there; its figure says what it is.
_LONGEST = 2.0
_STYLE = "  .below { fill: #bc4c00; } .floor { stroke: #cf222e; stroke-width: 3; }\n"


def draw(results: ShapesResults) -> str:
    """A whole SVG file."""
    scale = (WIDTH - _LABELS - _FIGURES) / min(_LONGEST, max(one.rate.most for one in results.shapes))
    bottom = _TOP + _ROW * len(results.shapes)
    one = _LABELS + scale
    parts = [
        _text("title", 0, 20, "Every shape of traffic: answers per second over the peer's"),
        _text("quiet", WIDTH - _FIGURES + 20, 40, "rate (floor)"),
        _text("quiet", WIDTH - _FIGURES + 170, 40, "p99 (at most)"),
        *(part for row, shape in enumerate(results.shapes) for part in _row(shape, _TOP + row * _ROW, scale)),
        f'<line class="one" x1="{one:.1f}" x2="{one:.1f}" y1="{_TOP - 6}" y2="{bottom - 4}"/>',
        _text(
            "quiet",
            0,
            bottom + 18,
            f"Dashed: the peer. Thick mark: the floor. Line: least to most of {results.rounds} rounds. One core each; "
            f"{results.made_at[:10]}.",
        ),
    ]
    return picture("Answers per second on every shape of traffic", parts, bottom + 28, _STYLE)


def _row(shape: Measured, y: float, scale: float) -> list[str]:
    base = y + _BAR - 2
    middle = y + _BAR / 2
    least, most = (_LABELS + _cut(ratio) * scale for ratio in (shape.rate.least, shape.rate.most))
    kind = "below" if shape.holds is False else "ours"
    label = f"{shape.what} · {shape.peer.partition(',')[0]}"
    parts = [
        f'<text class="quiet" x="{_LABELS - 10}" y="{base:.0f}" text-anchor="end">{escape(label)}</text>',
        f'<rect class="{kind}" x="{_LABELS}" y="{y}" width="{_cut(shape.rate.median) * scale:.1f}" height="{_BAR}"/>',
        f'<line class="spread" x1="{least:.1f}" x2="{most:.1f}" y1="{middle}" y2="{middle}"/>',
    ]
    rate, p99 = f"{shape.rate.median:.2f}", f"{shape.p99.median:.2f}"
    if shape.floor is not None:
        x = _LABELS + _cut(shape.floor.rate) * scale
        parts.append(f'<line class="floor" x1="{x:.1f}" x2="{x:.1f}" y1="{y - 3}" y2="{y + _BAR + 3}"/>')
        rate += f" ({shape.floor.rate:g})"
        p99 += f" ({shape.floor.p99:g})" if shape.floor.p99 else ""
    parts += [_text("quiet", WIDTH - _FIGURES + 20, base, rate), _text("quiet", WIDTH - _FIGURES + 170, base, p99)]
    return parts


def _cut(ratio: float) -> float:
    return min(ratio, _LONGEST)


def _text(kind: str, x: float, y: float, text: str) -> str:
    return f'<text class="{kind}" x="{x:.0f}" y="{y:.0f}">{escape(text)}</text>'
