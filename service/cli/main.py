"""The `forecast` command. Imports each of its groups only on use."""

from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click
from click.exceptions import NoSuchCommand

from service.base import interruption
from service.cli.output import print_json_error, printable_message

_COMMANDS = {
    "serve": ("service.cli.serve", "serve"),
    "status": ("service.cli.status.command", "status"),
    "top": ("service.cli.status.top", "top"),
    "requests": ("service.cli.requests.commands", "requests"),
    "cache": ("service.cli.cache.commands", "cache"),
    "demo": ("service.cli.demo.command", "demo"),
    "extracts": ("service.cli.extracts.drops", "extracts"),
    "keys": ("service.cli.keys.commands", "keys"),
    "plans": ("service.cli.keys.plans", "plans"),
    "partners": ("service.cli.keys.partners", "partners"),
    "log": ("service.cli.keys.log", "log"),
    "usage": ("service.cli.usage.command", "usage"),
    "config": ("service.cli.config", "config"),
}
# Similarity from 0 to 1 that a command of another group needs to be suggested; higher than for the same group.
_CLOSE = 0.7


class _Commands(click.Group):
    """The top-level group; one per process."""

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **extra: Any) -> click.Context:
        with _report_errors(as_json="--json" in args):
            return super().make_context(info_name, args, *more, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        # click detects wrong usage before the command can read --json
        with _report_errors(as_json="--json" in ctx.args):
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name]
        with interruption.delayed():
            command: click.Command = getattr(import_module(module), name)
        return command


@contextmanager
def _report_errors(*, as_json: bool) -> Iterator[None]:
    """Reports wrong usage (also as JSON, with mistyped keys masked), and an interruption."""
    try:
        yield
    except (SystemExit, click.exceptions.Exit):
        raise
    except click.UsageError as error:
        original = error.format_message()
        message = printable_message(_explain(error) if isinstance(error, NoSuchCommand) else original)
        if as_json:
            print_json_error(message)
        if message == original:
            raise  # some subclasses print help
        raise click.UsageError(message, error.ctx) from None
    except BaseException:
        if interruption.received_signal():
            interruption.end_interrupted()  # an interruption can arrive as any error
        raise


def _explain(error: NoSuchCommand) -> str:
    """Returns the message with similar commands, of the same group or of another."""
    name, paths = error.command_name, list(_paths())
    here = tuple(error.ctx.command_path.split()[1:]) if error.ctx else ()
    close = get_close_matches(name, {path[-1] for path in paths}, cutoff=_CLOSE)
    similar = (
        [_join(path) for path in paths if path[-1] == name]
        or get_close_matches(name, [path[-1] for path in paths if path[:-1] == here])
        or [_join(path) for path in paths if path[-1] in close]
    )
    if not similar:
        return f"{error.message} `{_join(here)} --help` lists the commands."
    return f"{error.message} Did you mean {' or '.join(repr(one) for one in similar)}?"


def _join(path: tuple[str, ...]) -> str:
    return " ".join(("forecast", *path))


def _paths() -> Iterator[tuple[str, ...]]:
    """Yields the path of every command. Imports all groups."""
    context = click.Context(main)
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        yield (name,)
        if isinstance(command, click.Group):
            yield from ((name, inner) for inner in command.list_commands(context))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="population-housing-forecast", prog_name="forecast")
def main() -> None:
    """Serve population and housing forecasts over HTTP.

    Settings come from the file in FORECAST_CONFIG, FORECAST_* variables and options; the last one wins. `forecast
    config` shows them. Results go to standard output; progress, warnings and logs go to standard error.

    Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 another publisher was first, 4 degraded and 5
    unavailable (`forecast status`), 130 interrupted with Ctrl-C.

    \b
    Examples:
      forecast demo                            try the service on made-up figures
      forecast extracts publish drops/2026-10  make a drop the current release
      forecast keys issue --partner acme       issue an API key
      forecast serve                           serve partners and operators
      forecast status                          show health, hit rates and latency
    """
