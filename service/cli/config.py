"""forecast config"""

import click

from config import settings as configuration
from service.cli.output import json_option, load_settings, print_json, reports_errors, stdout, table


@click.command()
@json_option
@reports_errors
def config(as_json: bool) -> None:
    """Show every setting in force and where its value came from; secrets are masked.

    \b
    forecast config
    FORECAST_WORKERS=4 forecast config --json
    """
    loaded = load_settings()
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
    shown = table("setting", "value", "from")
    for name, value, source, description in rows:
        shown.add_row(_variable(name), _text(value), source)
        shown.add_row(f"  [dim]{description}[/dim]", "", "")
    stdout().print(shown)


def _variable(name: str) -> str:
    return f"{configuration.PREFIX}{name.upper()}"


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    return "\n".join(value) if isinstance(value, tuple) else str(value)
