"""forecast config"""

import os
from collections.abc import Iterable

import click

from config import metadata
from config.loading import Loaded, load
from config.resources import lookup_memory, memory_source, near_cache_bytes, processors_source, worker_count
from config.settings import ENVIRONMENT_PREFIX
from config.urls import HIDDEN
from service.cli.output import Output, stdout, with_json
from service.keys import pepper
from service.reports.text_table import plain


@click.command()
@click.option("--defaults", is_flag=True, help="Show the defaults; ignore all settings.")
@with_json
def config(defaults: bool) -> Output:
    """Show the settings in force and their sources.

    Secrets are masked. In a URL, only the password is hidden.

    Exit codes: 0 shown, 1 a setting is unknown or invalid, 2 wrong usage.

    \b
    Examples:
      forecast config
      FORECAST_WORKERS=4 forecast config --json
    """
    unset = {name: value for name, value in os.environ.items() if not name.startswith(ENVIRONMENT_PREFIX)}
    loaded = load(unset if defaults else None)
    rows = [(name, *_in_force(loaded, name), metadata.describe_setting(name)) for name in metadata.names()]
    members = ("name", "value", "source", "description")
    value = [dict(zip(members, row, strict=True)) | {"variable": metadata.variable_of(row[0])} for row in rows]
    return Output(value, lambda: _print(rows))


def _print(rows: Iterable[tuple[str, object, str, str]]) -> None:
    console = stdout()
    for name, value, source, description in rows:
        origin = "" if source == "default" else f"  [yellow]({plain(source)})[/yellow]"
        console.print(f"[bold]{metadata.variable_of(name)}[/bold] = {plain(_text(value))}{origin}", soft_wrap=True)
        console.print(f"    [dim]{plain(description)}[/dim]", soft_wrap=True)


def _in_force(loaded: Loaded, name: str) -> tuple[object, str]:
    """Returns the value in use and its source; an unset value can come from the machine."""
    settings, source = loaded.settings, loaded.sources[name]
    value = getattr(settings, name)
    if value is None and name == "workers":
        return worker_count(settings), processors_source()
    if value is None and name == "lookup_memory":
        return lookup_memory(settings), memory_source()
    if value is None and name == "near_cache_bytes":
        return near_cache_bytes(settings), memory_source()
    if value is None and name == "keys_pepper" and pepper.file_of(settings.data_path).exists():
        return HIDDEN, f"the file {pepper.file_of(settings.data_path)}"
    return metadata.masked_setting(name, value), source


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    return " | ".join(value) if isinstance(value, tuple) else str(value)
