"""The `forecast` command. Each of its groups is imported only when it is used."""

from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click
from click.exceptions import NoSuchCommand

from service.base import interruption
from service.cli.output import print_json_error, shown

_COMMANDS = {
    "serve": ("service.cli.serve", "serve"),
    "status": ("service.cli.status.command", "status"),
    "top": ("service.cli.status.top", "top"),
    "requests": ("service.cli.requests.commands", "requests"),
    "cache": ("service.cli.cache.commands", "cache"),
    "demo": ("service.cli.demo.command", "demo"),
    "extracts": ("service.cli.extracts.drops", "extracts"),
    "keys": ("service.cli.keys.commands", "keys"),
    "usage": ("service.cli.usage.command", "usage"),
    "config": ("service.cli.config", "config"),
}
# Similarity from 0 to 1: a command of another group must resemble what was typed more than one of the same group.
_CLOSE = 0.7


class _Commands(click.Group):
    """The top level. It outlives no command line: one per process."""

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **extra: Any) -> click.Context:
        with _reported(as_json="--json" in args):
            return super().make_context(info_name, args, *more, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        # click notices wrong usage before the command itself could see --json
        with _reported(as_json="--json" in ctx.args):
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name]
        with interruption.held():
            command: click.Command = getattr(import_module(module), name)
        return command


@contextmanager
def _reported(*, as_json: bool) -> Iterator[None]:
    """Reports wrong usage (also as JSON, without any key that was given by mistake), and an interruption."""
    try:
        yield
    except (SystemExit, click.exceptions.Exit):
        raise
    except click.UsageError as error:
        original = error.format_message()
        message = shown(_explained(error) if isinstance(error, NoSuchCommand) else original)
        if as_json:
            print_json_error(message)
        if message == original:
            raise  # some kinds of it print help
        raise click.UsageError(message, error.ctx) from None
    except BaseException:
        if interruption.asked():
            interruption.end_interrupted()  # an interruption can reach us as any error
        raise


def _explained(error: NoSuchCommand) -> str:
    """The message, and the commands that were probably meant, of the same group or of another."""
    name, paths = error.command_name, list(_paths())
    here = tuple(error.ctx.command_path.split()[1:]) if error.ctx else ()
    close = get_close_matches(name, {path[-1] for path in paths}, cutoff=_CLOSE)
    meant = (
        [_typed(path) for path in paths if path[-1] == name]
        or get_close_matches(name, [path[-1] for path in paths if path[:-1] == here])
        or [_typed(path) for path in paths if path[-1] in close]
    )
    if not meant:
        return f"{error.message} `{_typed(here)} --help` lists the commands."
    return f"{error.message} Did you mean {' or '.join(repr(one) for one in meant)}?"


def _typed(path: tuple[str, ...]) -> str:
    return " ".join(("forecast", *path))


def _paths() -> Iterator[tuple[str, ...]]:
    """Every command, as the words that lead to it. Imports all groups."""
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

    Settings come from the file that FORECAST_CONFIG names, then from FORECAST_* variables, then from options. `forecast
    config` shows them. Results go to standard output; progress, warnings and logs go to standard error.

    Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 another publish finished first, 4 degraded and 5
    unavailable (`forecast status`), 130 interrupted with Ctrl-C.

    \b
    Examples:
      forecast demo                            try the service on made-up figures
      forecast extracts publish drops/2026-10  make a drop the current release
      forecast keys issue --partner acme       issue an API key
      forecast serve                           serve partners and operators
      forecast status                          see whether all is well
    """
