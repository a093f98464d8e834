"""forecast demo"""

import shlex
import sys
from functools import partial
from pathlib import Path

import click
import msgspec
from rich.console import Console

from service.base import interruption, logs
from service.base.sockets import StartError
from service.cli.demo.site import DemoLines, run_demo, shell_path
from service.cli.output import fail, load_settings, print_json, stderr, stdout, wants_json, with_json
from service.reports.text_table import plain
from warehouse.sql import connections


@click.command()
@partial(with_json, help_text="Log as JSON, and print the lines to copy as JSON once ready.")
def demo() -> None:
    """Try the service: made-up figures for every ZIP code.

    The demo makes three drops, publishes the first, issues a key and starts the service, with its documentation at
    /docs/. It then prints lines to copy. The first start takes about ten seconds, on a busy machine up to a minute;
    later starts reuse its results. All figures are marked as illustrative.

    It writes to the data folder (FORECAST_DATA_DIR). If that already has a release, the demo serves it. If a port is
    busy, it uses the next free one.

    Exit codes: 0 stopped, 1 it could not start, 2 wrong usage, 3 another publisher is at work.

    \b
    Examples:
      forecast demo
      FORECAST_LISTEN_PORT=9000 forecast demo
    """
    interruption.call_on_signal(connections.interrupt)
    loaded = load_settings()
    level = loaded.settings.log_level
    if loaded.sources["log_level"] == "default" and not wants_json():
        level = "warning"  # each request is a line, which would scroll the lines to copy away
    log_json = logs.configure("json" if wants_json() else loaded.settings.log_format, level)
    console = stderr()
    # another terminal uses the default data folder, so the lines to copy set any other
    elsewhere = f"FORECAST_DATA_DIR={shlex.quote(loaded.settings.data_dir)} "
    prefix = "" if loaded.sources["data_dir"] == "default" else elsewhere
    try:
        run_demo(
            msgspec.structs.replace(loaded.settings, log_level=level),
            log_json=log_json,
            say=lambda step: console.print(f"[dim]· {plain(step)}[/dim]"),
            on_ready=print_json if wants_json() else _print_lines,
            program=f"{prefix}{shell_path(Path(sys.argv[0]))}",
        )
    except StartError as error:
        fail(str(error))


def _print_lines(lines: DemoLines) -> None:
    console = stdout()
    console.print()
    if lines.illustrative:
        _print(console, "[bold yellow]The figures are illustrative: real places, made-up numbers.[/bold yellow]")
    else:
        _print(console, "[bold]This data folder already has a release, so the demo serves that one.[/bold]")
    _section(console, "Send requests, in another terminal", lines.ask)
    _section(
        console,
        "Read, in a browser",
        (("the documentation", lines.documentation), ("for its samples, type", lines.variables)),
    )
    _section(console, "Work as a data engineer", lines.publish)
    _section(console, "Work as an operator", lines.operate)
    _print(console, "\nCtrl-C stops everything.\n")


def _section(console: Console, title: str, rows: tuple[tuple[str, str], ...]) -> None:
    _print(console, f"\n[bold]{title}[/bold]")
    for purpose, line in rows:
        _print(console, f"  [dim]{purpose:24}[/dim]{plain(line)}")


def _print(console: Console, text: str) -> None:
    console.print(text, soft_wrap=True)  # a line to copy must not wrap
