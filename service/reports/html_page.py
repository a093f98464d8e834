"""The report of a checked drop as one self-contained page: report.html and its parts, in Jinja.

The page loads no other files and runs no script, so it can be mailed, stored beside a drop, and printed. The Jinja
environment makes every value printable, then escapes it: text of a drop is harmless.
"""

from datetime import UTC, datetime

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from config.text import printable
from service.reports import charts, wording
from warehouse.publishing.outcome import PublishOutcome
from warehouse.schema.comparison import CHANGE_STEPS, SIZE_STEPS, Comparison, Distribution, FigureChange, StateChange
from warehouse.schema.tables import HOUSING, POPULATION

_POPULATION = "population "


def render_page(outcome: PublishOutcome, drop: str, at: datetime | None = None) -> str:
    """Returns the page about the `outcome` of checking `drop` at the time `at` (default: now)."""
    comparison, release = outcome.report.comparison, outcome.manifest
    facts = [("Checked", f"{at or datetime.now(UTC):%Y-%m-%d %H:%M} UTC")]
    if release:
        facts.append(("Current release", release.id))
    if comparison:
        facts += [("ZIP codes", wording.places_line(comparison)), ("Figures", wording.figures_line(comparison))]
    values = {
        "drop": drop,
        "contents": _contents(comparison),
        "verdict": wording.drop_verdict(outcome),
        "facts": facts,
        "groups": wording.by_cause(outcome.report.findings),
        "comparison": comparison,
    }
    return _environment().get_template("report.html").render(values | (_charts(comparison) if comparison else {}))


def _contents(comparison: Comparison | None) -> dict[str, str]:
    if comparison is None:
        return {"findings": "Findings", "changes": "Changes from the current release"}
    sections: tuple[tuple[str, str, object], ...] = (
        ("losses", "Losses for partners", True),
        ("findings", "Findings", True),
        ("answers", "Changes for partners", comparison.answers),
        ("states", "States", comparison.states),
        ("figures", "Figures", comparison.figures or comparison.distributions),
        ("tables", "Tables", True),
        ("movers", "Largest movers", comparison.movers),
    )
    return {name: title for name, title, contents in sections if contents}


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("service.reports", ""),
        autoescape=True,
        finalize=_printable,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(wording=wording, scale=charts.SCALE, level=charts.level, figures_of=_figures_of)
    environment.filters.update(number=wording.number, share=wording.share)
    return environment


def _printable(value: object) -> object:
    """Makes a value of a template printable. Markup is the output of a macro, whose values are printable already."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _charts(comparison: Comparison) -> dict[str, object]:
    """Returns what the charts and the map show. Empty charts are left out of the page."""
    totals = {one.figure: (one.old_total, one.new_total) for one in comparison.figures}
    years = {int(name.removeprefix(_POPULATION)): pair for name, pair in totals.items() if name.startswith(_POPULATION)}
    tiles = charts.tile_places([state.state for state in comparison.states])
    return {
        "population": charts.population_lines(years) if years else None,
        "years": years,
        "homes": charts.bars({name: pair for name, pair in totals.items() if not name.startswith(_POPULATION)}),
        "tiles": tiles,
        "absent": sorted(tiles.keys() - {state.state for state in comparison.states}),
        "distributions": [(one.figure, *_distribution(one)) for one in comparison.distributions],
    }


def _distribution(one: Distribution) -> tuple[charts.Bars, charts.Bars]:
    """Returns the bars of a figure's ZIP codes: by its relative change, and by its size."""
    changes = {step: (number,) for step, number in zip(CHANGE_STEPS, one.changes, strict=True)}
    sizes = zip(one.old_sizes, one.new_sizes, strict=True)
    return charts.bars(changes, ("new",)), charts.bars(dict(zip(SIZE_STEPS, sizes, strict=True)))


def _figures_of(state: StateChange, table: str) -> list[FigureChange]:
    """Returns the figures of a state that `table` brings."""
    if table not in (POPULATION.name, HOUSING.name):
        return []
    return [one for one in state.figures if one.figure.startswith(_POPULATION) == (table == POPULATION.name)]
