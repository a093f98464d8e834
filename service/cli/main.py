"""The `forecast` command: its groups, each imported only when it is asked for."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click
from click.exceptions import NoSuchCommand

from service.base import interruption
from service.cli.output import print_json_error, shown

_COMMANDS = {
    "serve": ("service.cli.serve", "serve"),
    "demo": ("service.cli.demo.command", "demo"),
    "extracts": ("service.cli.extracts.drops", "extracts"),
    "keys": ("service.cli.keys.commands", "keys"),
    "usage": ("service.cli.usage.command", "usage"),
    "config": ("service.cli.config", "config"),
}


class _Commands(click.Group):
    def make_context(self, info_name: str | None, args: list[str], *more: Any, **extra: Any) -> click.Context:
        with _told(as_json="--json" in args):
            return super().make_context(info_name, args, *more, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        # wrong usage is noticed before the command itself could look
        with _told(as_json="--json" in ctx.args):
            return super().invoke(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except NoSuchCommand as error:  # click suggests from commands that are imported already
            raise NoSuchCommand(error.command_name, possibilities=_COMMANDS, ctx=ctx) from None

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
def _told(*, as_json: bool) -> Iterator[None]:
    """Wrong usage, also as JSON, and without the key that was given where none belongs; and that it was interrupted."""
    try:
        yield
    except (SystemExit, click.exceptions.Exit):
        raise
    except click.UsageError as error:
        message = error.format_message()
        if as_json:
            print_json_error(message)
        if shown(message) == message:
            raise
        raise click.UsageError(shown(message), error.ctx) from None
    except BaseException:
        if interruption.asked():
            interruption.end()  # whatever became of it on its way here
        raise


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="population-housing-forecast", prog_name="forecast")
def main() -> None:
    """Population and housing forecasts from a data warehouse, over HTTP.

    \b
    forecast demo                            see it work
    forecast extracts publish drops/2026-10  make a drop the current release
    forecast keys issue --partner acme       let a partner in
    forecast serve                           answer

    Settings come from the file that FORECAST_CONFIG names and from FORECAST_* variables; `forecast config` shows them.

    Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 lost to another publisher, 130 interrupted (Ctrl-C).
    """
