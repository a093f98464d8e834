"""Prints the changes from one release to another: totals first, then states and ZIP codes."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from service.reports import wording
from service.reports.text_table import NARROW, TextTable, plain, text_table
from warehouse.schema.comparison import Comparison
from warehouse.schema.tables import LOCATIONS

_NOISE = 0.05  # states of which a smaller share changed are not shown
_WORST_STATES = 8  # most states shown
_MOST_TOTALS = 12  # most figures shown


def print_comparison(console: Console, comparison: Comparison, title: str) -> None:
    """Prints places and answers, then the changes of tables, national totals and states, then the largest movers."""
    console.print(f"[bold]{plain(title)}[/bold]")
    heads = TextTable.grid(padding=(0, 2, 0, 0))
    heads.add_row("ZIP codes", wording.places_line(comparison))
    for label, by_state in (("  new in", comparison.places.gained), ("  gone from", comparison.places.lost)):
        if by_state:
            heads.add_row(label, wording.by_state(by_state))
    heads.add_row("figures", wording.figures_line(comparison))
    for name, line in (*wording.records_lines(comparison), *wording.answers_lines(comparison)):
        heads.add_row(name, line)
    for heading, figures in (
        (Text("new figures"), wording.new_figures(comparison)),
        (Text("vanished", "bold red"), wording.vanished_figures(comparison)),
    ):
        if figures:
            heads.add_row(heading, wording.listed_figures(figures))
    console.print(heads)
    console.print()
    tables = (
        _table_rows(comparison),
        _totals(comparison, console.width),
        _states(comparison, console.width),
        _movers(comparison, console.width),
    )
    for shown in tables:
        if shown.row_count:
            shown.collapse_padding = console.width < NARROW
            console.print(shown)
            console.print()
    same = wording.unchanged_line(comparison)
    if same:
        console.print(f"[dim]{same}[/dim]\n")


def _table_rows(comparison: Comparison) -> Table:
    shown = text_table("table", "rows before", "now", "change", numeric=("rows before", "now", "change"))
    for name, (old, new) in comparison.rows.items():
        if old != new:
            shown.add_row(name, wording.number(old), wording.number(new), wording.relative_change(old, new))
    return shown


def _totals(comparison: Comparison, width: int) -> Table:
    """Returns the changed figures that both releases have; if they are many, those that moved most."""
    counts = ("changed", "new", "gone") if width >= NARROW else ()
    shown = text_table(
        "national total", "before", "now", "change", *counts, numeric=("before", "now", "change", *counts)
    )
    figures = [figure for figure in wording.changed_figures(comparison) if figure.old_count and figure.new_count]
    most = sorted(figures, key=lambda figure: -figure.moved_share)[:_MOST_TOTALS]
    for figure in (one for one in figures if one in most):
        totals = (wording.number(figure.old_total), wording.number(figure.new_total))
        change = wording.relative_change(figure.old_total, figure.new_total)
        zip_codes = (
            f"{number:,}" if number else "" for number in (figure.changed, figure.gained, figure.lost)[: len(counts)]
        )
        shown.add_row(figure.figure, *totals, change, *zip_codes)
    if len(figures) > len(most):
        shown.add_row(Text(f"and {len(figures) - len(most)} more", "dim"))
    return shown


def _states(comparison: Comparison, width: int) -> Table:
    """Returns the states that changed by more than noise, worst first."""
    worst = [state for state in wording.worst_first(comparison.states) if wording.extent(state) >= _NOISE]
    counts = ("ZIP codes", "new", "gone", "lose figures") if width >= NARROW else ("gone", "lose figures")
    numeric = (*counts, "change", "moved")
    shown = text_table("state", *counts, "figure that moved most", "change", "moved", numeric=numeric)
    for state in worst[:_WORST_STATES]:
        most = state.most_moved
        numbers = {
            "ZIP codes": state.rows.get(LOCATIONS.name, (0, 0))[1],
            "new": state.gained,
            "gone": state.lost,
            "lose figures": state.without,
        }
        moved = ("", "", "")
        if most is not None:
            total = wording.relative_change(most.old_total, most.new_total)
            moved = (most.figure, total, wording.share(most.moved_share))
        cells = (f"{numbers[name]:,}" if numbers[name] else "" for name in counts)
        shown.add_row(wording.state_name(state), *cells, *moved)
    more = len(worst) - _WORST_STATES
    if more > 0:
        shown.add_row(Text(f"and {more} more", "dim"))
    return shown


def _movers(comparison: Comparison, width: int) -> Table:
    numeric = ("before", "now", "by", "others")
    places = ("place",) if width >= NARROW else ()
    shown = text_table("largest movers", *places, "figure", *numeric, numeric=numeric)
    for mover in comparison.movers:
        values = (f"{mover.old:,}", f"{mover.new:,}", f"{mover.new - mover.old:+,}", f"{mover.others or ''}")
        place = (wording.place_of(mover),) if places else ()
        shown.add_row(mover.zip_code, *place, mover.figure, *values)
    return shown
