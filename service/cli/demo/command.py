"""forecast demo"""

import shlex

import click
from rich.console import Console
from rich.markup import escape

from service.base import interruption, logs
from service.base.sockets import StartError
from service.cli.demo.site import DemoLines, program_name, run_demo
from service.cli.output import fail, load_settings, print_json, reports_errors, stderr, stdout
from warehouse.sql import connections


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the lines as JSON once it serves, and log JSON.")
@reports_errors
def demo(as_json: bool) -> None:
    """Serve an illustrative release of the whole country, with a key and lines to copy.

    Makes three drops, publishes the first, issues a key, starts the embedded Valkey, serves, with the documentation at
    /docs/. That takes about ten seconds, a minute on a busy machine; the second time everything is there already. The
    figures are made up, and marked so everywhere.

    \b
    forecast demo
    FORECAST_LISTEN_PORT=9000 forecast demo
    """
    interruption.ends_by(connections.interrupt)
    loaded = load_settings()
    log_json = logs.configure("json" if as_json else loaded.settings.log_format, loaded.settings.log_level)
    console = stderr()
    # elsewhere than in the default folder, the other terminal has to be told where
    elsewhere = f"FORECAST_DATA_DIR={shlex.quote(loaded.settings.data_dir)} "
    prefix = "" if loaded.sources["data_dir"] == "default" else elsewhere
    try:
        run_demo(
            loaded.settings,
            log_json=log_json,
            say=lambda step: console.print(f"[dim]· {escape(step)}[/dim]"),
            on_ready=print_json if as_json else _print_lines,
            program=f"{prefix}{program_name()}",
        )
    except StartError as error:
        fail(str(error), as_json=as_json)


def _print_lines(lines: DemoLines) -> None:
    console = stdout()
    console.print()
    if lines.illustrative:
        _print(console, "[bold yellow]The figures are illustrative: real places, made-up numbers.[/bold yellow]")
    else:
        _print(console, "[bold]Serving the release that was current already; it is not the demo's.[/bold]")
    _section(console, "Ask, in another terminal", lines.ask)
    _section(console, "Read, in a browser", (("the documentation", lines.documentation),))
    _section(console, "Be the data engineer", lines.publish)
    _section(console, "Be the operator", (("is it well?", f"curl -s {lines.operators}/health/ready"),))
    _print(console, f"  {'figures':24}curl -s {lines.operators}/metrics")
    _print(console, "\nCtrl-C stops everything.\n")


def _section(console: Console, title: str, rows: tuple[tuple[str, str], ...]) -> None:
    _print(console, f"\n[bold]{title}[/bold]")
    for purpose, line in rows:
        _print(console, f"  [dim]{purpose:24}[/dim]{escape(line)}")


def _print(console: Console, text: str) -> None:
    console.print(text, soft_wrap=True)  # a line to copy must stay one line
