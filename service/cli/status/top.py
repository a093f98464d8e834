"""forecast top"""

import itertools
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from types import FrameType
from typing import NoReturn

import click
from rich.console import Console
from rich.live import Live

from config.text import json_text, printable
from service.base.signals import on_stop
from service.cli.instances.chosen import url_option
from service.cli.output import load_settings, stdout, wants_json, with_json
from service.cli.status.command import OverviewResult, overall_as_json
from service.cli.status.live import Watch, hit_rate_of_point, keyboard, live_screen
from service.cli.words import latency, percent, rate, time_of_day

_EVERY_SECONDS = 1.0
_COLUMNS = "{:8}  {:8}  {:11}  {:>9}  {:>7}  {:>8}  {:>8}  {:>8}  {}"
_HEADING = _COLUMNS.format("UTC", "instance", "verdict", "requests", "5xx", "hit rate", "p50", "p99", "release")


@click.command()
@url_option
@click.option("--count", type=click.IntRange(min=1), help="Stop after N updates (default: run until q).")
@with_json
def top(url: str | None, count: int | None) -> None:
    """Show an instance's figures every second, until q or Ctrl-C.

    Shows the screen of `forecast status` with the last second, and below it the most frequent queries, cache misses and
    partners. Tab switches between several instances on the data folder. Waits for an instance that restarts. In a
    pipe, prints one line per instance and second; with --json, one object per second. Uses the same tokens as
    `forecast status`.

    Exit codes: 0 ended, 1 failed, 2 wrong usage.

    \b
    Examples:
      forecast top
      forecast top --url http://10.0.0.7:8001
      forecast top --count 60 --json > minute.jsonl
    """
    watch = Watch(load_settings().settings, url)
    console = stdout()
    with suppress(_Ended), on_stop(_end):
        if wants_json() or not console.is_terminal or console.is_dumb_terminal:
            _print_lines(watch, count)
        else:
            _show(watch, console, count)


def _show(watch: Watch, console: Console, count: int | None) -> None:
    with Live(console=console, screen=True, auto_refresh=False) as live, keyboard() as read_key:
        for due in _looks(count):
            watch.look()
            live.update(live_screen(watch, console, time.time()), refresh=True)
            key = read_key(due - time.monotonic())
            if key in ("q", "Q"):
                return
            if key == "\t":
                watch.show_next()


def _print_lines(watch: Watch, count: int | None) -> None:
    as_json = wants_json()
    if not as_json:
        click.echo(_HEADING)
    for due in _looks(count):
        watch.look()
        if as_json:
            click.echo(json_text({"at": time.time()} | overall_as_json(watch.results)))
        else:
            if not watch.results:
                click.echo(f"{time_of_day(time.time())}  {printable(watch.problem, None)}")
            for one in watch.results:
                click.echo(printable(_line(one), None))
        sys.stdout.flush()
        time.sleep(max(0.0, due - time.monotonic()))


def _line(one: OverviewResult) -> str:
    seen = one.answer
    if seen is None:
        return f"{time_of_day(time.time())}  {one.name} is unreachable: {one.error}"
    now = seen.latest
    return _COLUMNS.format(
        time_of_day(seen.at),
        seen.instance.id,
        seen.verdict.level,
        rate(now.ok + now.refused + now.failed),
        rate(now.failed),
        percent(hit_rate_of_point(now)),
        latency(now.p50),
        latency(now.p99),
        seen.releases[0].id if seen.releases else "none",
    )


def _looks(count: int | None) -> Iterator[float]:
    """Yields, for each look, the monotonic time of the next one in seconds; 0 for the last look."""
    for number in itertools.count(1):
        yield 0.0 if number == count else time.monotonic() + _EVERY_SECONDS
        if number == count:
            return


class _Ended(BaseException):
    """A signal ended `top`."""


def _end(_: int, __: FrameType | None) -> NoReturn:
    raise _Ended
