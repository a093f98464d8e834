"""Latency at a fixed arrival rate: half of the top rate, counted from when a request was meant to be sent.

A server that stalls delays all that should have been sent meanwhile, and here all of it counts. Beside it the same
with idle connections open, in alternating rounds. And the same for a peer at the same rate: what a busy machine does to
everybody is seen there as well.
"""

import os
import statistics
from collections.abc import Sequence
from contextlib import nullcontext
from time import perf_counter

import msgspec
from rich.console import Console

from tests.bench.client import OpenLoop, Timings, idle_connections
from tests.bench.contenders import BASES, PEERS, TIERS, Contender, start_peers, start_tiers
from tests.bench.load import check_programs, measure, request_heads, turns_of_servers, write_requests
from tests.bench.machine import machine
from tests.bench.report import new_table
from tests.bench.stage import CLIENT_CORE, HOT_ZIP_CODES, BenchError, Stage, console, stage
from tests.bench.verify import warm

_CONNECTIONS = 64
_RUN_IN_SECONDS = 1
_HEADINGS = ("wanted/s", "answers/s", "bad", "p50", "p99", "p99.9", "worst", "late", "client away", "kept waiting")


class Round(msgspec.Struct, frozen=True):
    """`waited`: milliseconds per second that the server could have run, and the machine ran something else on its
    processor. 10 of them are a hundredth of the time, so that p99 is the machine's."""

    timings: Timings
    waited: float


class Latency(msgspec.Struct, frozen=True):
    """Of one contender; `beside`: the same beside idle connections."""

    name: str
    alone: list[Round]
    beside: list[Round]


class Latencies(msgspec.Struct, frozen=True):
    """`top`: the tier's answers per second without a limit. `idle`: the idle connections."""

    machine: str
    load: float
    top: float
    idle: int
    contenders: list[Latency]


def openloop(tier: str, rounds: int, seconds: int, idle: int, rate: int | None) -> Latencies:
    """Runs at `rate`, else at half of the top rate that wrk reaches with the tier first.

    Raises:
        BenchError: if something needed is missing, or answers are not 200.
    """
    check_programs()
    with stage() as set_up:
        console.print("publishing, starting the servers")
        set_up.publish()
        zips = set_up.zip_codes()[:HOT_ZIP_CODES]
        contenders = _start(set_up, tier)
        for contender in contenders:
            warm(contender, zips)
        endpoint = contenders[0].endpoint
        hot = write_requests(set_up.folder / "hot", request_heads(endpoint, zips))
        top = measure(endpoint.base, hot, unique=True, seconds=3).rate
        os.sched_setaffinity(0, {CLIENT_CORE})  # the servers are started, and stay where they are
        found = [Latency(contender.name, [], []) for contender in contenders]
        for number in range(rounds):
            for contender, latency in zip(contenders, found, strict=True):
                latency.alone.append(_round(contender, zips, rate or top / 2, seconds, 0))
                latency.beside.append(_round(contender, zips, rate or top / 2, seconds, idle))
            console.print(f"round {number + 1}/{rounds}", style="dim")
    return Latencies(machine(), os.getloadavg()[0], top, idle, found)


def _start(set_up: Stage, tier: str) -> list[Contender]:
    """The tier, and the peer whose rate is 1 elsewhere, if it is installed."""
    chosen = [one for one in TIERS if one.name == tier and one.group == "hit"]
    if not chosen:
        there = ", ".join(one.name for one in TIERS if one.group == "hit")
        raise BenchError(f"no such tier: {tier}; there are {there}")
    started = start_tiers(set_up, chosen)
    peers, missing = start_peers(set_up, started[0].endpoint.base, [one for one in PEERS if one.name == BASES["hit"]])
    for name, lacks in missing.items():
        console.print(f"without {name}: {lacks}", style="yellow", markup=False)
    return started + peers


def _round(contender: Contender, zips: Sequence[str], rate: float, seconds: int, idle: int) -> Round:
    heads = request_heads(contender.endpoint, zips)
    with idle_connections(contender.endpoint, heads[0], idle) if idle else nullcontext():
        # not counted: connections come and go
        OpenLoop(contender.endpoint, heads, rate, _CONNECTIONS).run(_RUN_IN_SECONDS)
        client = OpenLoop(contender.endpoint, heads, rate, _CONNECTIONS)
        began, before = perf_counter(), turns_of_servers()
        timings = client.run(seconds)
        taken, after = perf_counter() - began, turns_of_servers()
    turns = [(ran - before[pid][0], waited - before[pid][1]) for pid, (ran, waited) in after.items() if pid in before]
    _, waited = max(turns)  # of the one under load; the others wait for it
    return Round(timings, waited / 1e6 / taken)


def show(latencies: Latencies, console: Console) -> None:
    table = new_table("milliseconds, medians of rounds", "beside")
    for heading in _HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for one in latencies.contenders:
        table.add_row(one.name, *_row(one.alone))
        table.add_row(f"  {latencies.idle:,} idle", *_row(one.beside))
    console.print(table)
    for one in latencies.contenders:
        ratios = [a.timings.p99 / b.timings.p99 for a, b in zip(one.beside, one.alone, strict=True)]
        console.print(
            f"{one.name}: p99 beside idle connections over p99 without: {statistics.median(ratios):.2f} "
            f"({min(ratios):.2f} - {max(ratios):.2f})"
        )
    console.print(f"top rate {latencies.top:,.0f}/s; load average {latencies.load:.1f}")
    console.print(
        "late: 99 % were sent at most so late: all connections waited, or the client did not keep up; client away: "
        "its longest pause, which no server causes; kept waiting: per second, how long the server was ready to run "
        "and the machine ran something else: 10 ms are a hundredth, and p99 is then the machine's.",
        style="dim",
    )


def _row(rounds: list[Round]) -> list[str]:
    timings = [one.timings for one in rounds]

    def median(name: str) -> float:
        return float(statistics.median(getattr(one, name) for one in timings))

    figures = [f"{median(name):.2f}" for name in ("p50", "p99", "p999", "worst", "lateness", "away")]
    waited = f"{statistics.median(one.waited for one in rounds):.2f}"
    return [
        f"{median('wanted'):,.0f}",
        f"{median('rate'):,.0f}",
        str(sum(one.bad for one in timings)),
        *figures,
        waited,
    ]
