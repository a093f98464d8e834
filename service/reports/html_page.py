"""The report of a checked drop as one self-contained page: report.html and its parts, in Jinja.

The page loads no other files and runs no script, so it can be mailed, stored beside a drop, and printed. The Jinja
environment makes every value printable, then escapes it: text of a drop is harmless.
"""

from datetime import UTC, datetime
from pathlib import Path

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from config.text import printable
from service.reports import charts, wording
from warehouse.files.atomic import write_atomically
from warehouse.publishing.outcome import PublishOutcome
from warehouse.schema.comparison import CHANGE_STEPS, SIZE_STEPS, Comparison, Distribution, FigureChange, StateChange
from warehouse.schema.errors import CatalogError
from warehouse.schema.tables import HOUSING, POPULATION

_POPULATION = "population "
Bars = dict[str, tuple[charts.Bar, ...]]


class DistributionCharts(msgspec.Struct, frozen=True):
    """The two charts of a figure: ZIP codes by its relative change, and by its size."""

    figure: str
    changes: Bars
    sizes: Bars


class Charts(msgspec.Struct, frozen=True):
    """All charts of a comparison. Empty ones are not shown."""

    population: charts.LineChart | None
    years: dict[int, charts.Pair]  # the numbers of `population`
    homes: Bars
    tiles: dict[str, tuple[int, int]]  # by state: column and row on the map
    absent: tuple[str, ...]  # states of the map that neither release has
    distributions: tuple[DistributionCharts, ...]


class ReportPage(msgspec.Struct, frozen=True):
    """Everything that report.html shows."""

    drop: str
    contents: dict[str, str]  # by id: titles of the sections
    verdict: wording.DropVerdict
    facts: tuple[tuple[str, str], ...]
    groups: tuple[wording.FindingGroup, ...]
    comparison: Comparison | None
    losses: tuple[tuple[str, str], ...]
    charts: Charts | None  # None without a comparison


def write_page(path: Path, outcome: PublishOutcome, drop: str) -> None:
    """Writes the page about the `outcome` of checking `drop`. Raises CatalogError if it cannot be written."""
    try:
        write_atomically(path, render_page(outcome, drop).encode())
    except OSError as error:
        raise CatalogError(f"cannot write {path}: {error.strerror}") from None


def render_page(outcome: PublishOutcome, drop: str, at: datetime | None = None) -> str:
    """Returns the page about the `outcome` of checking `drop` at the time `at` (default: now)."""
    comparison, release = outcome.report.comparison, outcome.manifest
    facts = [("Checked", f"{at or datetime.now(UTC):%Y-%m-%d %H:%M} UTC")]
    if release:
        facts.append(("Current release", release.id))
    if comparison:
        facts += [("ZIP codes", wording.places_line(comparison)), ("Figures", wording.figures_line(comparison))]
    page = ReportPage(
        drop=drop,
        contents=_contents(comparison),
        verdict=wording.drop_verdict(outcome),
        facts=tuple(facts),
        groups=tuple(wording.by_cause(outcome.report.findings)),
        comparison=comparison,
        losses=tuple(wording.losses_lines(comparison)) if comparison else (),
        charts=_charts(comparison) if comparison else None,
    )
    return _environment().get_template("report.html").render(page=page)


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


def _charts(comparison: Comparison) -> Charts:
    totals = {one.figure: (one.old_total, one.new_total) for one in comparison.figures}
    years = {int(name.removeprefix(_POPULATION)): pair for name, pair in totals.items() if name.startswith(_POPULATION)}
    tiles = charts.tile_places([state.state for state in comparison.states])
    return Charts(
        population=charts.population_lines(years) if years else None,
        years=years,
        homes=charts.bars({name: pair for name, pair in totals.items() if not name.startswith(_POPULATION)}),
        tiles=tiles,
        absent=tuple(sorted(tiles.keys() - {state.state for state in comparison.states})),
        distributions=tuple(map(_distribution, comparison.distributions)),
    )


def _distribution(one: Distribution) -> DistributionCharts:
    changes = {step: (number,) for step, number in zip(CHANGE_STEPS, one.changes, strict=True)}
    pairs = zip(one.old_sizes, one.new_sizes, strict=True)
    sizes = dict(zip(SIZE_STEPS, pairs, strict=True))
    return DistributionCharts(one.figure, charts.bars(changes, ("new",)), charts.bars(sizes))


def _figures_of(state: StateChange, table: str) -> list[FigureChange]:
    """Returns the figures of a state that `table` brings."""
    if table not in (POPULATION.name, HOUSING.name):
        return []
    return [one for one in state.figures if one.figure.startswith(_POPULATION) == (table == POPULATION.name)]
