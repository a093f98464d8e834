"""The report of a checked drop as one self-contained page, with small charts of the drift.

It loads nothing and runs no script, so it can be mailed, kept beside a drop, and printed.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from importlib import resources
from string import Template

from service.reports import charts, wording
from service.reports.charts import Pair
from service.reports.wording import visible
from warehouse.publishing.publish import PublishOutcome
from warehouse.schema.comparison import Comparison
from warehouse.schema.findings import Finding

_POPULATION = "population "
_SIGNS = {"error": "✕", "warning": "!", "info": "i"}
_NAMES = {"error": "Error", "warning": "Warning", "info": "Note"}


def _key(kind: str) -> str:
    swatch = '<span class="swatch {} {}"></span>'.format
    return f'<p class="key">{swatch(kind, "old")}current release {swatch(kind, "new")}this drop</p>'


def render_page(outcome: PublishOutcome, drop: str, at: datetime | None = None) -> str:
    """The page about the `outcome` of checking `drop` at the time `at` (default: now)."""
    template = resources.files("service.reports").joinpath("html_page.html").read_text(encoding="utf-8")
    said = wording.verdict(outcome)
    comparison = outcome.report.comparison
    return Template(template).substitute(
        drop=_text(drop),
        tone=said.tone,
        sign="✕" if said.tone == "bad" else "✓",
        word=_text(said.word),
        rest=_text(said.rest),
        facts=_facts(outcome, at or datetime.now(UTC)),
        findings=_findings(outcome.report.findings),
        drift=_drift(comparison) if comparison else f"<p>{wording.NOT_COMPARED}</p>",
    )


def _text(text: str) -> str:
    return escape(visible(text))


def _name(text: str) -> str:
    """A long name, with places where a line may break."""
    return _text(text).replace("_", "_<wbr>").replace("/", "/<wbr>")


def _facts(outcome: PublishOutcome, at: datetime) -> str:
    comparison, release = outcome.report.comparison, outcome.manifest
    facts = [("Checked", f"{at:%Y-%m-%d %H:%M} UTC")]
    if release:
        facts.append(("Current release", release.id))
    if comparison:
        facts.append(("ZIP codes", wording.places_line(comparison)))
        facts.append(("Figures", wording.figures_line(comparison)))
    return "".join(f"<div><dt>{name}</dt><dd>{_text(value)}</dd></div>" for name, value in facts)


def _findings(findings: Sequence[Finding]) -> str:
    if not findings:
        return "<p>Nothing was found.</p>"
    heads = ("Severity", "Rule", "What was found, and what to do", "Where", "Count")
    rows = [
        f'<tr class="{finding.severity}">'
        f'<td class="severity"><span class="sign" aria-hidden="true">{_SIGNS[finding.severity]}</span>'
        f'{_NAMES[finding.severity]}</td><td class="rule">{_rule(finding)}</td>'
        f"<td>{_said(finding)}</td><td>{_where(finding)}</td>"
        f'<td class="number">{finding.count:,}</td></tr>'
        for finding in findings
    ]
    return _table("Worst first", heads, rows, numeric=("Count",))


def _rule(finding: Finding) -> str:
    return f"{'└ ' if finding.follows else ''}<code>{_text(finding.rule)}</code>"


def _said(finding: Finding) -> str:
    parts = [f'<p class="message">{_text(finding.message)}</p>']
    samples = wording.samples_of(finding)
    if samples:
        row = " row" if wording.in_a_row(samples) else ""
        items = "".join(f"<li>{escape(sample)}</li>" for sample in samples)
        parts.append(f'<ul class="samples{row}">{items}</ul>')
    if finding.accepted is not None:
        parts.append(f'<p class="remedy">Accepted: {_text(finding.accepted)}</p>')
    elif remedy := wording.remedy_of(finding):
        parts.append(f'<p class="remedy">→ {_text(remedy)}</p>')
    return "".join(parts)


def _where(finding: Finding) -> str:
    known = (("table", finding.table), ("column", finding.column), ("file", finding.file))
    lines = [f"<dt>{name}</dt><dd>{_name(value)}</dd>" for name, value in known if value]
    return f'<dl class="where">{"".join(lines)}</dl>' if lines else ""


def _drift(comparison: Comparison) -> str:
    """Charts of the figures that there are, and the numbers behind them."""
    totals = {figure.figure: (figure.old_total, figure.new_total) for figure in comparison.figures}
    years = {int(name.removeprefix(_POPULATION)): pair for name, pair in totals.items() if name.startswith(_POPULATION)}
    homes = {name: pair for name, pair in totals.items() if not name.startswith(_POPULATION)}
    cards = (_population(years), _housing(homes), _rows(comparison), _movers(comparison), _states(comparison))
    return f'<div class="cards">{"".join(cards)}</div>{_totals(comparison)}'


def _population(years: Mapping[int, Pair]) -> str:
    if not years:
        return ""
    caption = "People in the whole country, by year. A dot is a year with figures; the axis need not begin at zero."
    return _figure("Population", caption, charts.population_lines(years), _key("lines"))


def _housing(homes: Mapping[str, Pair]) -> str:
    if not homes:
        return ""
    return _figure("Housing", "Homes in the whole country, by figure.", charts.housing_bars(homes), _key("bars"))


def _states(comparison: Comparison) -> str:
    places = comparison.places
    if not places.gained and not places.lost:
        return ""
    caption = "ZIP codes that only this drop has (gained) or only the current release has (lost), by state."
    samples = [
        f"<p>{word}, such as: {_text(', '.join(zip_codes))}</p>"
        for word, zip_codes in (("Gained", places.gained_samples), ("Lost", places.lost_samples))
        if zip_codes
    ]
    return _figure("ZIP codes by state", caption, charts.state_bars(places.gained, places.lost), "", *samples)


def _totals(comparison: Comparison) -> str:
    rows = [
        _row(
            figure.figure,
            *_pair(figure.old_total, figure.new_total),
            *(f"{zip_codes:,}" if zip_codes else "" for zip_codes in (figure.changed, figure.gained, figure.lost)),
        )
        for figure in wording.changed_figures(comparison)
    ]
    heads = ("Figure", "Before", "Now", "Change", "ZIP codes changed", "ZIP codes new", "ZIP codes gone")
    same = wording.unchanged_line(comparison)
    shown = _table("National totals that changed", heads, rows, numeric=heads[1:]) if rows else ""
    return f"<section><h3>National totals</h3>{shown}<p>{same}</p></section>"


def _movers(comparison: Comparison) -> str:
    if not comparison.movers:
        return ""
    rows = [
        _row(mover.zip_code, mover.figure, f"{mover.old:,}", f"{mover.new:,}", f"{mover.new - mover.old:+,}")
        for mover in comparison.movers
    ]
    heads = ("ZIP code", "Figure", "Before", "Now", "By")
    shown = _table("ZIP codes whose figures changed most", heads, rows, numeric=heads[2:])
    return f"<section><h3>Largest movers</h3>{shown}</section>"


def _rows(comparison: Comparison) -> str:
    rows = [_row(name, *_pair(old, new)) for name, (old, new) in comparison.rows.items()]
    heads = ("Table", "Before", "Now", "Change")
    shown = _table("Rows of each table", heads, rows, numeric=heads[1:])
    constant = "" if comparison.places.gained or comparison.places.lost else "<p>No ZIP code came or went.</p>"
    records = "".join(f"<p>{_text(name)}: {line}.</p>" for name, line in wording.records_lines(comparison))
    return f"<section><h3>Tables</h3>{shown}{constant}{records}</section>"


def _pair(old: int | None, new: int | None) -> tuple[str, str, str]:
    return wording.number(old), wording.number(new), wording.relative_change(old, new)


def _row(name: str, *cells: str) -> str:
    """Cells that hold a number, or nothing, stand on the right."""
    made = [
        f"<td>{_text(cell)}</td>" if cell[:1].isalpha() else f'<td class="number">{_text(cell)}</td>' for cell in cells
    ]
    return f'<tr><th scope="row">{_text(name)}</th>{"".join(made)}</tr>'


def _table(caption: str, heads: Sequence[str], rows: Iterable[str], *, numeric: Sequence[str] = ()) -> str:
    kinds = [' class="number"' if head in numeric else "" for head in heads]
    columns = "".join(f'<th scope="col"{kind}>{head}</th>' for head, kind in zip(heads, kinds, strict=True))
    return (
        f'<div class="wide"><table><caption>{caption}</caption><thead><tr>{columns}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _figure(title: str, caption: str, chart: str, *more: str) -> str:
    below = "".join(more)
    return f"<section><h3>{title}</h3><figure><figcaption>{caption}</figcaption>{chart}{below}</figure></section>"
