"""forecast extracts watch, and what it shares with the watcher that `serve` runs."""

import io
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click
import msgspec
from rich.console import Console

from config.settings import Settings
from service.base import interruption, logs
from service.base.signals import stop_signals
from service.cli.output import FAILED, WIDTH, load_settings, reports_errors
from service.publishing.inbox import Means, Stopped, Watcher
from service.publishing.inbox_events import Event, log_event
from service.publishing.inbox_folders import Inbox
from service.reports import terminal
from warehouse.publishing.publish import Outcome


@click.command()
@click.argument("folder", required=False)
@click.option("--once", is_flag=True, help="Handle what is complete now, and end; exit code 1 if a drop was refused.")
@click.option("--json", "as_json", is_flag=True, help="Print each event as a line of JSON on standard output.")
@reports_errors
def watch(folder: str | None, once: bool, as_json: bool) -> None:
    """Publish the drops that appear in FOLDER, or in the one that FORECAST_INBOX names.

    A drop is a folder or a Parquet file. It is taken once it has its marker file (FORECAST_INBOX_MARKER) or nothing in
    it has changed for a while (FORECAST_INBOX_QUIET), and moved to published/ or quarantine/ with its report.

    Exit codes: 0 ended, 1 a drop was refused or the folder cannot be used, 2 wrong usage, 3 another watcher or
    publisher was first (--once).

    \b
    forecast extracts watch /drops/inbox
    forecast extracts watch /drops/inbox --once
    """
    settings = load_settings({"inbox": folder}).settings
    if settings.inbox is None:
        raise click.UsageError("name the inbox's folder, or set FORECAST_INBOX")
    logs.configure(settings.log_format, settings.log_level)

    def tell(event: Event) -> None:
        log_event(event)
        if as_json:
            click.echo(msgspec.json.encode(event))

    watcher = make_watcher(settings, settings.inbox, tell, once=once)
    watcher.prepare()  # a mistyped folder is an error now; one that goes later is waited for
    with stoppable(tell):
        if not once:
            watcher.watch()
        elif not watcher.once():
            sys.exit(FAILED)


def make_watcher(
    settings: Settings,
    folder: str,
    tell: Callable[[Event], None],
    on_problem: Callable[[str | None], None] = lambda _: None,
    *,
    once: bool = False,
) -> Watcher:
    inbox = Inbox(Path(folder), marker=settings.inbox_marker, quiet=settings.inbox_quiet, by_age=once)
    return Watcher(settings, inbox, Means(tell=tell, text_of=report_text, on_problem=on_problem))


def report_text(outcome: Outcome) -> str:
    """What `publish` prints about a drop, without colours."""
    console = Console(file=io.StringIO(), width=WIDTH, highlight=False, emoji=False, color_system=None)
    terminal.print_outcome(console, outcome)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]  # the StringIO above
    return text


@contextmanager
def stoppable(tell: Callable[[Event], None]) -> Iterator[None]:
    """SIGTERM, SIGINT and SIGHUP abandon what is under way: it is whole at every point, and taken up next time."""
    numbers = stop_signals()

    def stop(number: int, _: FrameType | None) -> None:
        interruption.note(number)
        for again in numbers:
            signal.signal(again, signal.SIG_IGN)  # once is enough; a second one must not disturb the tidying up
        raise Stopped(signal.Signals(number).name)

    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    except Stopped as stopped:
        tell(Event(event="stopped", message=f"stopped by {stopped}; a drop that was under way is taken up next time"))
    finally:
        interruption.forget()
        for number, handler in before.items():
            signal.signal(number, handler)
