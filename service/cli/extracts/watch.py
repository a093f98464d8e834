"""forecast extracts watch, and what it shares with the watcher that `serve` runs."""

import sys

import click
import msgspec

from service.base import logs
from service.cli.output import FAILED, load_settings, reports_errors
from service.publishing.inbox_events import Event, log_event
from service.publishing.watching import make_watcher, stoppable


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
