"""forecast extracts watch"""

import sys

import click

from config.printable import json_text
from service.base import logs
from service.base.signals import log_unused
from service.cli.output import FAILED, load_settings, reports_errors
from service.publishing.inbox_events import Event, log_event
from service.publishing.watching import make_watcher, stoppable


@click.command()
@click.argument("folder", required=False)
@click.option("--once", is_flag=True, help="Publish what is complete now, then exit.")
@click.option("--json", "as_json", is_flag=True, help="Print each event as a line of JSON on standard output.")
@reports_errors
def watch(folder: str | None, once: bool, as_json: bool) -> None:
    """Publish the drops that appear in an inbox folder.

    FOLDER is the inbox. Default: FORECAST_INBOX. `forecast serve` does the same by itself if FORECAST_INBOX is set.

    A drop is a folder or one Parquet file. It counts as complete once it holds the file FORECAST_INBOX_MARKER, or once
    nothing in it has changed for FORECAST_INBOX_QUIET seconds. It is then published, refused, or held for approval, and
    moved to published/, quarantine/ or held/ in FOLDER with its report.

    SIGTERM, SIGHUP, SIGQUIT and Ctrl-C stop the watcher; a drop under way is published next time.

    Exit codes: 0 stopped, 1 the folder cannot be used (with --once, also: a drop was refused or held), 2 wrong usage, 3
    another watcher or publisher was first (--once).

    \b
    Examples:
      forecast extracts watch /drops/inbox
      forecast extracts watch /drops/inbox --once
    """
    settings = load_settings({"inbox": folder}).settings
    if settings.inbox is None:
        raise click.UsageError("name the inbox folder, or set FORECAST_INBOX")
    logs.configure(settings.log_format, settings.log_level)
    log_unused()

    def tell(event: Event) -> None:
        log_event(event)
        if as_json:
            click.echo(json_text(event))

    watcher = make_watcher(settings, settings.inbox, tell, once=once)
    watcher.prepare()  # a mistyped folder is an error; a folder that vanishes later is waited for
    with stoppable(tell):
        if not once:
            watcher.watch()
        elif not watcher.once():
            sys.exit(FAILED)
