"""`python -m tests.bench`: the command line of the benchmarks."""

import sys
from pathlib import Path

import click
import msgspec

from tests.bench import chart, cutoff, held, report
from tests.bench.compare import compare
from tests.bench.contenders import PEERS
from tests.bench.shapes import chart as shapes_chart
from tests.bench.shapes import report as shapes_report
from tests.bench.shapes.catalog import NAMES
from tests.bench.shapes.measuring import measure_shapes
from tests.bench.shapes.results import ShapesResults
from tests.bench.stage import BenchError, console

HERE = Path(__file__).parent
_CHARTS = HERE.parents[1] / "docs/design"
RESULTS, CHART = HERE / "results.json", _CHARTS / "results.svg"
SHAPES_RESULTS, SHAPES_CHART = HERE / "shapes.json", _CHARTS / "shapes.svg"
_JSON = click.option("--json", "file", type=click.Path(path_type=Path, dir_okay=False), help="Write the figures here.")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def main() -> None:
    """Measure the service. The server is on one processor, its client on another.

    \b
    make bench-peers                       install what is compared with
    python -m tests.bench compare          beside nginx, Varnish, Bun, FastAPI, ROAPI and others: 7 minutes
    python -m tests.bench shapes           every shape of traffic, each ratio beside its floor: 15 minutes
    python -m tests.bench held             what it takes to hold every answer of the country near
    python -m tests.bench cutoff           answers under clients that go away; none may get another's
    """


@main.command("compare")
@click.option("--rounds", default=10, show_default=True, type=click.IntRange(1), help="Alternating rounds.")
@click.option("--seconds", default=1, show_default=True, type=click.IntRange(1), help="Length of one sample.")
@click.option("--keep", is_flag=True, help="Keep figures and chart as those that the README shows.")
@_JSON
def compare_command(rounds: int, seconds: int, keep: bool, file: Path | None) -> None:
    """Beside others in one run: rates, core time per answer, ratios with their spread.

    Requests have the same bytes every time, or headers that differ on each (request id, trace, forwarded for), as
    behind a balancer. Every answer has to be 2xx, and everybody's answers are compared before the run. Peers that
    are not installed are named.
    """
    results = compare(rounds, seconds)
    report.show(results, console)
    report.save(results, file, RESULTS if keep else None)
    if keep:
        CHART.write_text(chart.draw(results))
    if any(series.bad for series in results.series):
        raise BenchError("there were answers that are not 2xx")


@main.command("shapes")
@click.option("--only", multiple=True, type=click.Choice(NAMES), help="This one; can be repeated. Default: all.")
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1), help="Alternating rounds.")
@click.option("--seconds", default=2, show_default=True, type=click.IntRange(1), help="Length of one sample, at least.")
@click.option("--keep", is_flag=True, help="Keep figures and chart as those that the README shows.")
@_JSON
def shapes_command(only: tuple[str, ...], rounds: int, seconds: int, keep: bool, file: Path | None) -> None:
    """Beside nginx with Lua on every shape of traffic: ratios of rate and p99, each beside its floor.

    Answers are checked, status and bytes, before a shape counts, and counted while it runs. A run says how long it
    takes. Peers that are not installed are named.
    """
    results = measure_shapes(only or NAMES, rounds, seconds)
    shapes_report.show(results, console)
    report.save(results, file, SHAPES_RESULTS if keep else None)
    if keep:
        SHAPES_CHART.write_text(shapes_chart.draw(results))
    if results.failed:
        raise BenchError("there were wrong answers")


@main.command("held")
def held_command() -> None:
    """What it takes to hold every answer of the country near: memory of a worker, time of an answer."""
    held.held()


@main.command("cutoff")
@click.option("--requests", "total", default=1_000_000, show_default=True, type=click.IntRange(1), help="How many.")
@click.option("--seed", default=1, show_default=True, help="Makes a run repeatable.")
@_JSON
def cutoff_command(total: int, seed: int, file: Path | None) -> None:
    """Every tenth request is cut off by its client at a random byte; no answer may belong to another request."""
    found = cutoff.cutoff(total, seed)
    for name, cut in found.items():
        console.print(
            f"{name}: {cut.requests:,} requests, {cut.cut:,} cut off, {cut.answered:,} answered rightly, "
            f"{cut.foreign} with another's answer, {cut.wrong} not at all or not 200"
        )
    report.save(found, file)
    if any(cut.foreign or cut.wrong for cut in found.values()):
        raise BenchError("there were wrong answers")


@main.command("chart")
def chart_command() -> None:
    """Draw the charts of the README again from the figures kept."""
    CHART.write_text(chart.draw(msgspec.json.decode(RESULTS.read_bytes(), type=report.Results)))
    click.echo(CHART)
    if SHAPES_RESULTS.exists():
        SHAPES_CHART.write_text(shapes_chart.draw(msgspec.json.decode(SHAPES_RESULTS.read_bytes(), type=ShapesResults)))
        click.echo(SHAPES_CHART)


@main.command("peers")
def peers_command() -> None:
    """What is compared with, and how to install what is missing."""
    for peer in PEERS:
        lacks = peer.lacks()
        click.echo(f"{peer.name:34}{f'missing: {lacks}' if lacks else 'installed'}")


def run() -> int:
    try:
        main(standalone_mode=False)
    except BenchError as error:
        console.print(f"bench: {error}", style="red", soft_wrap=True, markup=False)
        return 1
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        console.print("bench: interrupted; everything is stopped")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(run())
