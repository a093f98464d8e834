"""forecast config"""

import click
from rich.markup import escape

from config import settings as configuration
from service.cli.output import default_settings, json_option, load_settings, print_json, reports_errors, stdout


@click.command()
@click.option("--defaults", is_flag=True, help="Show the defaults, whatever is set.")
@json_option
@reports_errors
def config(defaults: bool, as_json: bool) -> None:
    """Show every setting in force and where its value came from; secrets are masked.

    \b
    forecast config
    FORECAST_WORKERS=4 forecast config --json
    """
    loaded = default_settings() if defaults else load_settings()
    rows = [
        (
            name,
            configuration.masked(name, getattr(loaded.settings, name)),
            loaded.sources[name],
            configuration.describe(name),
        )
        for name in configuration.names()
    ]
    if as_json:
        members = ("name", "value", "source", "description")
        print_json([dict(zip(members, row, strict=True)) | {"variable": _variable(row[0])} for row in rows])
        return
    console = stdout()
    for name, value, source, description in rows:
        origin = "" if source == "default" else f"  [yellow]({escape(source)})[/yellow]"
        console.print(f"[bold]{_variable(name)}[/bold] = {escape(_text(value))}{origin}", soft_wrap=True)
        console.print(f"    [dim]{escape(description)}[/dim]", soft_wrap=True)


def _variable(name: str) -> str:
    return f"{configuration.PREFIX}{name.upper()}"


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    return " | ".join(value) if isinstance(value, tuple) else str(value)
