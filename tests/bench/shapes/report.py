"""What the shapes found, as tables for a terminal."""

import statistics
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from tests.bench.load import Sample
from tests.bench.report import new_table, show_run
from tests.bench.shapes.crowds import Waits
from tests.bench.shapes.results import MeasuredCrowd, ShapesResults, Spread

# A server that was busy for less of the time was not saturated.
_SATURATED = 0.9
_NO_CLIENT_LEFT = 0.95


def show(results: ShapesResults, console: Console) -> None:
    if results.shapes:
        console.print(_shapes(results))
        console.print(
            "Median (least - most) of rounds. rate: answers/s over the peer's; p99: over the peer's; core: the peer's "
            "processor time per answer over ours. *: the client was at its limit.",
            style="dim",
        )
    if results.crowds:
        console.print(_crowds(results.crowds))
        console.print(
            "wait: from opening a connection to its first answer, milliseconds; none: without an answer. "
            f"*: the server was idle for more than {1 - _SATURATED:.0%} of the time, not saturated.",
            style="dim",
        )
    for problem in results.failed.values():
        console.print(f"does not count: {problem}", style="red", soft_wrap=True, markup=False)
    show_run(results, console)


def _shapes(results: ShapesResults) -> Table:
    table = new_table("Shapes of traffic, on one core", "shape", "over")
    for heading in ("answers/s", "theirs", "rate", "floor", "p99 ms", "p99", "at most", "core"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in results.shapes:
        floor = one.floor
        table.add_row(
            *(one.what, one.peer, _rate(one.ours), _rate(one.theirs)),
            *(_spread(one.rate), f"{floor.rate:g}" if floor else "", f"{_median(one.ours, 'p99'):.1f}"),
            *(_spread(one.p99), f"{floor.p99:g}" if floor and floor.p99 else "", f"{one.cost.median:.2f}"),
            style={None: "", True: "green", False: "red"}[one.holds],
        )
    return table


def _crowds(crowds: Sequence[MeasuredCrowd]) -> Table:
    table = new_table("Connections opened at once while the worker is saturated: medians of rounds", "crowd", "who")
    for heading in (
        "least wait",
        "median",
        "longest",
        "no answer",
        "broken",
        "fewest answers",
        "median answers",
        "core",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in crowds:
        for name, rounds in one.waits.items():
            busy = _of(rounds, "busy")
            table.add_row(
                *(one.what, name),
                *(f"{_of(rounds, what):,.1f}" for what in ("least", "median")),
                f"{_of(rounds, 'longest'):,.1f} ({min(r.longest for r in rounds):,.0f} - "
                f"{max(r.longest for r in rounds):,.0f})",
                *(f"{_of(rounds, what):,.0f}" for what in ("unanswered", "broken", "fewest", "typical")),
                f"{busy:.0%}{'*' if busy < _SATURATED else ''}",
            )
    return table


def _of(rounds: Sequence[Waits], what: str) -> float:
    return float(statistics.median(getattr(one, what) for one in rounds))


def _median(samples: Sequence[Sample], what: str) -> float:
    return float(statistics.median(getattr(one, what) for one in samples))


def _rate(samples: Sequence[Sample]) -> str:
    return f"{_median(samples, 'rate'):,.0f}{'*' if _median(samples, 'client') > _NO_CLIENT_LEFT else ''}"


def _spread(one: Spread) -> str:
    return f"{one.median:.2f} ({one.least:.2f} - {one.most:.2f})"
