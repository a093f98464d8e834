"""Latency at a fixed arrival rate: half of the top rate, counted from when a request was meant to be sent.

A server that stalls delays all that should have been sent meanwhile, and here all of it counts. Beside it the same
with idle connections open, in alternating rounds.
"""

import os
import statistics
from contextlib import nullcontext

import msgspec
from rich.console import Console

from tests.bench.client import OpenLoop, Timings, idle_connections, request_heads
from tests.bench.compare import HOT_ZIP_CODES, machine
from tests.bench.contenders import TIERS, Contender, start_tiers
from tests.bench.load import check_programs, measure
from tests.bench.report import new_table
from tests.bench.stage import CLIENT_CORE, BenchError, console, stage
from tests.bench.verify import warm

_CONNECTIONS = 64
_RUN_IN_SECONDS = 1


class Latency(msgspec.Struct, frozen=True):
    """`top`: answers per second without a limit. `beside_idle`: the same beside `idle` connections."""

    tier: str
    machine: str
    load: float
    top: float
    idle: int
    rounds: list[Timings]
    beside_idle: list[Timings]


def openloop(tier: str, rounds: int, seconds: int, idle: int, rate: int | None) -> Latency:
    """Runs at `rate`, else at half of the top rate that wrk reaches first.

    Raises:
        BenchError: if something needed is missing, or answers are not 200.
    """
    check_programs()
    with stage() as set_up:
        console.print("publishing, starting the service")
        set_up.publish()
        zips = set_up.zip_codes()[:HOT_ZIP_CODES]
        contender = _tier(start_tiers(set_up), tier)
        warm(contender, zips)
        hot = set_up.folder / "hot"
        hot.write_text("\n".join(zips))
        top = measure(contender.endpoint, hot, unique=True, seconds=3).rate
        heads = request_heads(contender.endpoint, zips)
        os.sched_setaffinity(0, {CLIENT_CORE})  # the servers are started, and stay where they are
        plain: list[Timings] = []
        beside: list[Timings] = []
        for number in range(rounds):
            for open_beside, found in ((0, plain), (idle, beside)):
                with idle_connections(contender.endpoint, heads[0], open_beside) if open_beside else nullcontext():
                    for length in (_RUN_IN_SECONDS, seconds):  # the first is not counted: connections come and go
                        client = OpenLoop(contender.endpoint, heads, rate or top / 2, _CONNECTIONS)
                        timings = client.run(length)
                    found.append(timings)
            console.print(f"round {number + 1}/{rounds}", style="dim")
    return Latency(tier, machine(), os.getloadavg()[0], top, idle, plain, beside)


def _tier(started: list[Contender], name: str) -> Contender:
    for one in started:
        if one.name == name and one.group == "hit":
            return one
    raise BenchError(f"no such tier: {name}; there are {', '.join(tier.name for tier in TIERS if tier.group == 'hit')}")


def show(latency: Latency, console: Console) -> None:
    table = new_table(f"{latency.tier}: milliseconds, medians of rounds", "beside")
    for heading in ("wanted/s", "answers/s", "bad", "p50", "p99", "p99.9", "worst", "sent late", "client away"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, rounds in (("nothing", latency.rounds), (f"{latency.idle:,} idle connections", latency.beside_idle)):
        table.add_row(name, *_row(rounds))
    console.print(table)
    ratios = [one.p99 / other.p99 for one, other in zip(latency.beside_idle, latency.rounds, strict=True)]
    console.print(
        f"p99 beside idle connections over p99 without: {statistics.median(ratios):.2f} "
        f"({min(ratios):.2f} - {max(ratios):.2f}); top rate {latency.top:,.0f}/s; load average {latency.load:.1f}"
    )
    console.print(
        "sent late: 99 % left at most so late: all connections waited, or the client did not keep up; client away: "
        "its longest pause, which no server causes. Where that is long, the machine has other work: measure again.",
        style="dim",
    )


def _row(rounds: list[Timings]) -> list[str]:
    def median(name: str) -> float:
        return float(statistics.median(getattr(one, name) for one in rounds))

    figures = [f"{median(name):.2f}" for name in ("p50", "p99", "p999", "worst", "lateness", "away")]
    return [f"{median('wanted'):,.0f}", f"{median('rate'):,.0f}", str(sum(one.bad for one in rounds)), *figures]
