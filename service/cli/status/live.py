"""The screen of `forecast top`: that of `status`, with the last second and with rankings."""

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from config.settings import Settings
from config.text import printable
from service.cli.instances.chosen import NONE_RUNS, call_all, targets
from service.cli.status.command import OverviewResult, fetch_overview
from service.cli.status.screen import figures, parts, verdict_text
from service.cli.words import since, time_of_day
from service.operators.overview import HitRate, Overview, Point, Ranked, Traffic
from service.reports.text_table import TextTable, facts_table

# Waits up to the given seconds for a key; returns it, or None.
ReadKey = Callable[[float], str | None]


@contextmanager
def keyboard() -> Iterator[ReadKey]:
    """Yields a function that reads single keys, without echo, until the block ends."""
    if not sys.stdin.isatty():
        yield _sleep
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    try:
        yield lambda seconds: _read(descriptor, seconds)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _read(descriptor: int, seconds: float) -> str | None:
    ready, _, _ = select.select([descriptor], [], [], max(0.0, seconds))
    # end of input: the terminal was closed, so end
    return (os.read(descriptor, 1).decode(errors="replace") or "q") if ready else None


def _sleep(seconds: float) -> None:
    time.sleep(max(0.0, seconds))


_PARTS = ("statuses", "workers", "key store", "shared cache", "warehouse", "inbox")
_EVENTS = 4
_ANY_WIDTH = 1000  # to measure how wide a table would be

Ranking = tuple[str, tuple[Ranked, ...]]


class Watch:
    """The instances, and the one on the screen, of one `top`.

    `seen` is its newest overview. If it is unreachable, `unreachable_since` is set, and `problem` has the reason.
    """

    def __init__(self, settings: Settings, url: str | None) -> None:
        self._settings = settings
        self._fixed = url
        self._shown: str | None = url
        self.results: Sequence[OverviewResult] = ()
        self.seen: Overview | None = None
        self.unreachable_since: float | None = None
        self.problem = ""

    def look(self) -> None:
        """Queries all running instances; returns within the timeout of one query."""
        # again each time: a restarted instance has another process, and perhaps another port
        found = targets(self._settings, self._fixed, warns=False)
        self.results = call_all(self._settings, found, fetch_overview)
        shown = next((one for one in self.results if one.url == self._shown), self.results[0] if self.results else None)
        if shown is not None and shown.answer is not None:
            self.seen, self._shown = shown.answer, shown.url
            self.unreachable_since = None
            return
        self.unreachable_since = self.unreachable_since or time.time()
        self.problem = (shown.error or "") if shown else NONE_RUNS.format(self._settings.data_path.absolute())

    def show_next(self) -> None:
        """Shows the next instance from the next look on."""
        urls = [one.url for one in self.results]
        if urls:
            at = urls.index(self._shown) if self._shown in urls else -1
            self._shown = urls[(at + 1) % len(urls)]


def live_screen(watch: Watch, console: Console, now: float) -> RenderableType:
    """Returns the screen, at most as high as the terminal."""
    seen = watch.seen
    outage = _outage(watch, now)
    if seen is None:
        return Group(*outage, Text(), _footer(watch))
    about = facts_table(row for row in parts(seen) if row[0] in _PARTS)
    top = Group(*outage, verdict_text(seen.verdict, seen.at), Text(), _figures(seen, console), Text(), about, Text())
    rest = console.size.height - len(console.render_lines(top)) - 1
    return Group(top, *_lists(seen, rest), _footer(watch))


def _outage(watch: Watch, now: float) -> list[Text]:
    if watch.unreachable_since is None:
        return []
    text = Text(f"Unreachable {since(watch.unreachable_since, now)}: {watch.problem}", "bold red")
    return [text.append(f"\nThe figures below are of {time_of_day(watch.seen.at)} UTC.", "dim") if watch.seen else text]


def _figures(seen: Overview, console: Console) -> Table:
    """Returns hit rates and traffic; without the last hour if the terminal is too narrow for it."""
    hits = {"1 s": _hits(seen.latest), "1 min": seen.hit_rate_now, "1 h": seen.hit_rate_hour}
    requests = {"1 s": _requests(seen.latest), "1 min": seen.traffic_now, "1 h": seen.traffic_hour}
    both = figures(hits, requests)
    if console.measure(both, options=console.options.update(width=_ANY_WIDTH)).maximum <= console.width:
        return both
    del hits["1 h"], requests["1 h"]
    return figures(hits, requests)


def hit_rate_of_point(latest: Point) -> float | None:
    """Returns the share of answers from a cache; None without answers."""
    found = latest.near + latest.shared
    answers = found + latest.warehouse
    return found / answers if answers else None


def _hits(latest: Point) -> HitRate:
    """Returns the rates of one second as counts."""
    near, shared, warehouse = round(latest.near), round(latest.shared), round(latest.warehouse)
    return HitRate(
        seconds=1.0,
        near=near,
        shared=shared,
        warehouse=warehouse,
        previous=0,
        not_found=round(latest.not_found),
        rate=hit_rate_of_point(latest),
    )


def _requests(latest: Point) -> Traffic:
    return Traffic(
        seconds=1.0,
        requests=latest.ok + latest.refused + latest.failed,
        errors=latest.failed,
        by_status={},
        p50=latest.p50,
        p99=latest.p99,
        p999=latest.p999,
    )


def _lists(seen: Overview, lines: int) -> Iterator[RenderableType]:
    """Yields rankings in pairs and the newest events, as many as fit into `lines`."""
    for pair in _rankings(seen):
        rows = min(max(len(ranked) for _, ranked in pair) or 1, lines - 2)  # a heading above, a blank line below
        if rows < 1:
            return
        yield _pair(pair, rows)
        yield Text()
        lines -= rows + 2
    for event in seen.events[: min(_EVENTS, max(0, lines))]:
        yield Text(f"{time_of_day(event.at)} {printable(event.text)}", "dim", no_wrap=True, overflow="ellipsis")


def _rankings(seen: Overview) -> list[tuple[Ranking, Ranking]]:
    """Returns the rankings in pairs, the most useful first."""
    found = seen.rankings
    partners = tuple(Ranked(one.name, one.requests) for one in seen.partners)
    return [
        (("most requested", found.queries), ("most missed", found.missed)),
        (("busiest partners", partners), ("429 (keys)", found.limited)),
        (("not found", found.unknown), ("401", found.refused)),
    ]


def _pair(pair: tuple[Ranking, Ranking], rows: int) -> Table:
    table = TextTable(box=None, expand=True, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name, _ in pair:
        table.add_column("about", justify="right", no_wrap=True, min_width=9)
        table.add_column(name, no_wrap=True, overflow="ellipsis", ratio=1)
    for number in range(rows):
        cells: list[str] = []
        for _, ranked in pair:
            one = ranked[number] if number < len(ranked) else None
            cells += ("", "") if one is None else (f"{one.count:,}", f"{one.name} {one.detail}".rstrip())
        table.add_row(*cells)
    return table


def _footer(watch: Watch) -> Text:
    text = Text(
        f"{printable(watch.seen.instance.id)} on {printable(watch.seen.instance.host)}; " if watch.seen else "", "dim"
    )
    if len(watch.results) > 1:
        text.append(f"Tab: the next of {len(watch.results)} instances; ")
    return text.append("q or Ctrl-C ends")
