"""The part of a page that shows changes: charts and tables of figures, states, answers and ZIP codes."""

from collections.abc import Mapping
from itertools import chain

from service.reports import charts, html_parts, wording
from service.reports.charts import Pair
from warehouse.schema.comparison import (
    CHANGE_STEPS,
    SIZE_STEPS,
    AnswerExample,
    Comparison,
    FigureChange,
    StateChange,
)
from warehouse.schema.tables import HOUSING, LOCATIONS, POPULATION

_POPULATION = "population "


def render_comparison(comparison: Comparison) -> str:
    """Returns charts of the figures in the releases, and tables of the numbers behind them."""
    totals = {figure.figure: (figure.old_total, figure.new_total) for figure in comparison.figures}
    years = {int(name.removeprefix(_POPULATION)): pair for name, pair in totals.items() if name.startswith(_POPULATION)}
    homes = {name: pair for name, pair in totals.items() if not name.startswith(_POPULATION)}
    cards = (_population(years), _housing(homes), _rows(comparison), _states(comparison))
    return "".join(
        (
            _vanished(comparison),
            f'<div class="cards">{"".join(cards)}</div>',
            _map_of_states(comparison),
            _answers(comparison),
            _movers(comparison),
            _distributions(comparison),
            _totals(comparison),
            _table_of_states(comparison),
        )
    )


def _vanished(comparison: Comparison) -> str:
    gone = wording.vanished_figures(comparison)
    if not gone:
        return ""
    return f'<p class="gone"><strong>Vanished:</strong> {html_parts.text(wording.listed_figures(gone))}</p>'


def _population(years: Mapping[int, Pair]) -> str:
    if not years:
        return ""
    caption = "People in the whole country, by year. A dot is a year with figures; the axis need not begin at zero."
    return html_parts.figure("Population", caption, charts.population_lines(years), html_parts.key("lines"))


def _housing(homes: Mapping[str, Pair]) -> str:
    if not homes:
        return ""
    return html_parts.figure(
        "Housing",
        "Homes in the whole country, by figure.",
        charts.pair_bars("Homes by figure", homes),
        html_parts.key("bars"),
    )


def _states(comparison: Comparison) -> str:
    places = comparison.places
    if not places.gained and not places.lost:
        return ""
    caption = "ZIP codes only in this drop (gained) or only in the current release (lost), by state."
    samples = [
        f"<p>{word}, such as: {html_parts.text(', '.join(zip_codes))}</p>"
        for word, zip_codes in (("Gained", places.gained_samples), ("Lost", places.lost_samples))
        if zip_codes
    ]
    return html_parts.figure("ZIP codes by state", caption, charts.state_bars(places.gained, places.lost), "", *samples)


def _totals(comparison: Comparison) -> str:
    rows = [
        html_parts.row(
            figure.figure,
            *html_parts.pair(figure.old_total, figure.new_total),
            *(f"{zip_codes:,}" if zip_codes else "" for zip_codes in (figure.changed, figure.gained, figure.lost)),
        )
        for figure in wording.changed_figures(comparison)
    ]
    heads = ("Figure", "Before", "Now", "Change", "ZIP codes changed", "ZIP codes new", "ZIP codes gone")
    same = wording.unchanged_line(comparison)
    shown = html_parts.table("National totals that changed", heads, rows, numeric=heads[1:]) if rows else ""
    return f"<section><h3>National totals</h3>{shown}<p>{same}</p></section>"


def _movers(comparison: Comparison) -> str:
    if not comparison.movers:
        return ""
    rows = [
        html_parts.row(
            mover.zip_code,
            wording.place_of(mover),
            mover.figure,
            f"{mover.old:,}",
            f"{mover.new:,}",
            f"{mover.new - mover.old:+,}",
            f"{mover.others:,}",
        )
        for mover in comparison.movers
    ]
    heads = ("ZIP code", "Place", "Figure", "Before", "Now", "By", "Others")
    shown = html_parts.table(
        "ZIP codes with the largest changes: one figure each, and the number of their other changed figures",
        heads,
        rows,
        numeric=heads[3:],
    )
    return f"<section><h3>Largest movers</h3>{shown}</section>"


def _rows(comparison: Comparison) -> str:
    rows = [html_parts.row(name, *html_parts.pair(old, new)) for name, (old, new) in comparison.rows.items()]
    heads = ("Table", "Before", "Now", "Change")
    shown = html_parts.table("Rows of each table", heads, rows, numeric=heads[1:])
    constant = "" if comparison.places.gained or comparison.places.lost else "<p>No ZIP code is new or gone.</p>"
    records = "".join(f"<p>{html_parts.text(name)}: {line}.</p>" for name, line in wording.records_lines(comparison))
    return f"<section><h3>Tables</h3>{shown}{constant}{records}</section>"


def _map_of_states(comparison: Comparison) -> str:
    if not comparison.states:
        return ""
    tiles = {
        state.state: charts.Tile(wording.extent(state), _label(state), _state_title(state))
        for state in comparison.states
    }
    caption = (
        "The number is the share of a state that changed: of the total of its most changed figure, or of its ZIP codes "
        "that are new, gone or lose a figure, whichever is larger. Deeper colours mean larger shares."
    )
    chart = charts.state_tiles("Changes by state", tiles)
    return html_parts.figure("States", caption, f'<div class="map">{chart}</div>')


def _label(state: StateChange) -> str:
    old, new = state.rows.get(LOCATIONS.name, (0, 0))
    if old and not new:
        return "gone"
    return "new" if new and not old else wording.share(wording.extent(state))


def _state_title(state: StateChange) -> str:
    old, new = state.rows.get(LOCATIONS.name, (0, 0))
    counts = (
        f"{old:,} ZIP codes before, {new:,} now, {state.gained:,} new, {state.lost:,} gone; "
        f"{state.changed:,} answers change, {state.without:,} lose figures"
    )
    most = state.most_moved
    if most is None:
        return counts
    total = wording.relative_change(most.old_total, most.new_total)
    return f"{counts}; {most.figure} moved most: {wording.share(most.moved_share)}, its total {total}"


def _table_of_states(comparison: Comparison) -> str:
    if not comparison.states:
        return ""
    heads = ("State", "Table", "Rows", "ZIP codes with the figure", "Total", "Change", "Moved")
    groups = [_rows_of_state(state, len(heads)) for state in wording.worst_first(comparison.states)]
    shown = html_parts.table(
        "Of two numbers in a cell, the upper one is the current release's. Moved: the sum of all ZIP codes' changes, "
        "up or down, as a share of the old total; shuffled figures move although their total stays the same. "
        "States without changes have one line",
        heads,
        chain.from_iterable(groups),
        numeric=heads[2:],
    )
    return f'<section class="by-state"><h3>By state and table, most changed first</h3>{shown}</section>'


def _rows_of_state(state: StateChange, columns: int) -> list[str]:
    """Returns a line about the state; if it changed, also a row for each table and each of its figures."""
    title = f"{html_parts.text(wording.state_name(state))}: {html_parts.text(_state_title(state))}"
    lines = [f'<tr class="state"><th scope="rowgroup" colspan="{columns}">{title}</th></tr>']
    if not wording.is_changed(state):
        return lines
    figures = {
        POPULATION.name: [one for one in state.figures if one.figure.startswith(_POPULATION)],
        HOUSING.name: [one for one in state.figures if not one.figure.startswith(_POPULATION)],
    }
    for table, pair in state.rows.items():
        rows = _pair_cell(*pair)
        for one in figures.get(table, ()) or (None,):
            lines.append(_row_of_state(state.state, table, rows, one))
            rows = '<td class="number"></td>'
    return lines


def _row_of_state(state: str, table: str, rows: str, one: FigureChange | None) -> str:
    name = html_parts.name(table) + (f"<br><small>{html_parts.name(one.figure)}</small>" if one else "")
    head = f'<tr><th scope="row">{html_parts.text(state)}</th><td>{name}</td>{rows}'
    if one is None:
        return f"{head}<td></td><td></td><td></td><td></td></tr>"
    change = wording.relative_change(one.old_total, one.new_total)
    moved = "".join(
        f'<td class="number">{html_parts.text(part)}</td>' for part in (change, wording.share(one.moved_share))
    )
    return f"{head}{_pair_cell(one.old_count, one.new_count)}{_pair_cell(one.old_total, one.new_total)}{moved}</tr>"


def _pair_cell(old: int | None, new: int | None) -> str:
    """Returns a cell with the old number above the new one, or with one number if they are equal."""
    before = "" if old == new else f"<s>{wording.number(old)}</s><br>"
    return f'<td class="number">{before}{wording.number(new)}</td>'


def _answers(comparison: Comparison) -> str:
    lines = wording.answers_lines(comparison)
    if comparison.answers is None:
        return ""
    items = "".join(f"<li>{line}</li>" for _, line in lines)
    examples = "".join(_example(one) for one in comparison.answers.examples)
    return f'<section><h3>Changes for partners</h3><ul>{items}</ul><div class="examples">{examples}</div></section>'


def _example(example: AnswerExample) -> str:
    rows = [html_parts.row(one.name, _value(one.old), _value(one.new)) for one in example.fields]
    more = f"<p>and {example.more} more fields</p>" if example.more else ""
    caption = f"{html_parts.text(example.zip_code)}: {html_parts.text(example.why)}"
    heads = ("Field", "Before", "Now")
    return f'<div class="example">{html_parts.table(caption, heads, rows, numeric=heads[1:])}{more}</div>'


def _value(value: str | float | None) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:,}"


def _distributions(comparison: Comparison) -> str:
    figures = []
    for one in comparison.distributions:
        name = html_parts.text(one.figure)
        changes = charts.step_bars(f"Changes of {one.figure}", dict(zip(CHANGE_STEPS, one.changes, strict=True)))
        figures.append(
            html_parts.figure(f"How {name} changed", "ZIP codes, by relative change of the figure.", changes)
        )
        pairs = zip(one.old_sizes, one.new_sizes, strict=True)
        sizes = charts.pair_bars(f"Sizes of {one.figure}", dict(zip(SIZE_STEPS, pairs, strict=True)))
        caption = "ZIP codes, by the size of the figure, before and now."
        figures.append(html_parts.figure(f"How large {name} is", caption, sizes, html_parts.key("bars")))
    return f'<div class="cards">{"".join(figures)}</div>' if figures else ""
