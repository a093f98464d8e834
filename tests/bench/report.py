"""What a comparison found: ratios with their spread, as a table and as JSON."""

import statistics
from pathlib import Path
from typing import Literal

import msgspec
from rich.console import Console
from rich.table import Table

from tests.bench.contenders import PAIRS
from tests.bench.load import Sample
from tests.bench.verify import Likeness

Headers = Literal["unique", "same"]
HEADERS: tuple[Headers, Headers] = ("unique", "same")
_CLIENT_BUSY = 0.95


class Series(msgspec.Struct, frozen=True):
    """The samples of one contender with one sort of request, a sample per round."""

    name: str
    group: str
    headers: Headers
    samples: list[Sample]

    def median(self, what: str) -> float:
        return float(statistics.median(getattr(sample, what) for sample in self.samples))

    @property
    def bad(self) -> int:
        return sum(sample.bad for sample in self.samples)


class Ratio(msgspec.Struct, frozen=True):
    """A tier's rate over a peer's in the same round: median, least and most of all rounds; `cost` is the median of
    the peer's processor time per answer over the tier's, which a busy machine disturbs less."""

    ours: str
    peer: str
    headers: Headers
    median: float
    least: float
    most: float
    cost: float
    floor: float | None


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """`load`: the machine's load average before and after the run. `missing`: peers that are not installed."""

    made_at: str
    machine: str
    load: tuple[float, float]
    rounds: int
    seconds: int
    notes: dict[str, str]
    missing: dict[str, str]


class Results(Run, frozen=True, kw_only=True):
    series: list[Series]
    ratios: list[Ratio]
    likeness: dict[str, Likeness]


def ratios(series: list[Series]) -> list[Ratio]:
    """Those of PAIRS of which both were measured."""
    by_name = {(one.name, one.headers): one for one in series}
    found = []
    for pair in PAIRS:
        for index, headers in enumerate(HEADERS):
            ours, peer = by_name.get((pair.ours, headers)), by_name.get((pair.peer, headers))
            if ours and peer:
                found.append(_ratio(ours, peer, pair.floor[index] if pair.floor else None))
    return found


def _ratio(ours: Series, peer: Series, floor: float | None) -> Ratio:
    rounds = list(zip(ours.samples, peer.samples, strict=True))
    rates = [one.rate / other.rate for one, other in rounds]
    costs = [other.cost / one.cost for one, other in rounds if one.cost]
    return Ratio(
        ours=ours.name,
        peer=peer.name,
        headers=ours.headers,
        median=statistics.median(rates),
        least=min(rates),
        most=max(rates),
        cost=statistics.median(costs) if costs else 0.0,
        floor=floor,
    )


def show(results: Results, console: Console) -> None:
    console.print(_rates(results))
    console.print(_ratios(results))
    console.print(
        "core µs: processor time of all server processes per answer. *: the client was at its limit.", style="dim"
    )
    show_run(results, console)


def show_run(run: Run, console: Console) -> None:
    for name, note in run.notes.items():
        console.print(f"{name}: {note}.", style="dim", soft_wrap=True)
    for name, install in run.missing.items():
        console.print(f"not measured, because not installed: {name}: {install}", soft_wrap=True)
    before, after = run.load
    rounds = f"{run.rounds} rounds; load average {before:.1f} before, {after:.1f} after"
    console.print(f"{run.machine}; {rounds}", style="dim")


def _rates(results: Results) -> Table:
    table = new_table("On one core, 32 connections: medians", "what", "headers")
    for heading in ("answers/s", "core µs", "p50 ms", "p99 ms", "not 2xx", "bytes"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in results.series:
        busy = "*" if one.median("client") > _CLIENT_BUSY else ""
        table.add_row(
            one.name,
            one.headers,
            f"{one.median('rate'):,.0f}{busy}",
            f"{one.median('cost'):,.1f}",
            f"{one.median('p50'):.2f}",
            f"{one.median('p99'):.2f}",
            str(one.bad),
            "same" if results.likeness[one.name].same_bytes else "differ",
        )
    return table


def _ratios(results: Results) -> Table:
    table = new_table("Ratios of answers/s, round by round", "this project", "over", "headers")
    for heading in ("median", "least - most", "core time", "floor"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in results.ratios:
        style = "" if one.floor is None else "green" if one.median >= one.floor else "red"
        table.add_row(
            *(one.ours, one.peer, one.headers, f"{one.median:.2f}", f"{one.least:.2f} - {one.most:.2f}"),
            *(f"{one.cost:.2f}", f"{one.floor:g}" if one.floor else ""),
            style=style,
        )
    return table


def new_table(title: str, *columns: str) -> Table:
    """A plain table whose first columns are text that is not wrapped."""
    table = Table(box=None, title=title, title_justify="left", title_style="bold", padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table


def save(figures: object, *files: Path | None) -> None:
    """Writes JSON to each of `files` that is one."""
    for file in filter(None, files):
        file.write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=1) + b"\n")
