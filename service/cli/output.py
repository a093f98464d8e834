"""Output of commands: results on standard output; errors, in one line, and all else on standard error."""

import functools
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple, NoReturn, ParamSpec

import click

from config import loading
from config.loading import Loaded
from config.settings import Settings, SettingsError
from config.streams import STDOUT, AsIs
from config.text import json_text, printable
from service.base import interruption
from service.base.masking import masked
from service.embedded.runtime import EmbeddedError
from service.keys.errors import KeyStoreError
from service.redis.errors import StoreUnavailable
from warehouse.schema.errors import BusyError, WarehouseError

if TYPE_CHECKING:
    from rich.console import Console

P = ParamSpec("P")

# Exit codes.
FAILED = 1
LOST = 3  # another publisher is at work or finished first

_WANTS_JSON = f"{__name__}.wants_json"


class Output(NamedTuple):
    """The result of a command: `value` is printed with --json, otherwise `show` prints it for people.

    `problem` is printed after it, on standard error; the command then fails.
    """

    value: object
    show: Callable[[], None]
    problem: str | None = None
    code: int = 0  # exit code


def wants_json() -> bool:
    """Whether --json was given to the command that runs."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_WANTS_JSON))


def stdout(*, wide: bool = False) -> "Console":
    """Returns standard output. `wide`: for tables that use the whole width of a terminal."""
    return _console(stderr=False, wide=wide)


def stderr() -> "Console":
    return _console(stderr=True)


def print_json(value: object) -> None:
    click.echo(json_text(value, indented=True))


def print_json_error(message: str) -> None:
    print_json({"error": {"message": printable_message(message)}})


def print_error(message: str) -> None:
    """Prints one line on standard error."""
    click.echo(f"forecast: {printable_message(message)}", err=True)


def printable_message(message: str) -> str:
    """Returns `message` as one printable line, with mistyped keys masked."""
    return masked(printable(message, None))


def load_settings(overrides: dict[str, object] | None = None) -> Loaded:
    return loading.load(overrides=overrides)


def data_folder_member(settings: Settings) -> dict[str, str]:
    """Returns the JSON member of commands that act on the data folder."""
    return {"data_folder": str(settings.data_path.absolute())}


def print_data_folder(settings: Settings) -> None:
    """Prints the data folder, because a missing FORECAST_DATA_DIR is a common mistake."""
    print_dimly(f"data folder {settings.data_path.absolute()}")


def print_warnings(sentences: Iterable[str]) -> None:
    """Prints each on standard error."""
    from service.reports.text_table import plain  # imported here, because an instance prints none

    for sentence in sentences:
        stderr().print(f"[yellow]warning[/] {plain(masked(sentence))}", soft_wrap=True)


def print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        stdout().print(line)


def print_dimly(text: str) -> None:
    """Prints context of a result, such as its place, on standard error."""
    stderr().print(printable_message(text), style="dim", markup=False, soft_wrap=True)


def with_json(
    command: Callable[P, Output | None], help_text: str = "Print the result as JSON on standard output."
) -> Callable[P, None]:
    """Adds --json to a command, prints the Output that it returns, and turns errors into one line and an exit code.

    Only errors that a user can fix: other errors are bugs and pass through. A command may also print by itself.
    """

    @click.option(
        "--json", is_flag=True, expose_value=False, is_eager=True, help=help_text,
        callback=lambda context, _, given: context.meta.update({_WANTS_JSON: given}),
    )  # fmt: skip
    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            output = command(*args, **kwargs)
            code = 0 if output is None else print_output(output)
            sys.stdout.flush()  # so that a full disk raises here, not when the interpreter exits
        except BusyError as error:
            fail(str(error), LOST)
        except (SettingsError, WarehouseError, KeyStoreError, StoreUnavailable, EmbeddedError) as error:
            fail(str(error))
        except OSError as error:  # a full disk or an unreadable folder is not a bug
            if error.filename == STDOUT:
                raise  # standard output is closed: the program ends
            where = f"{error.filename}: " if error.filename else ""
            fail(f"{where}{error.strerror or error}")
        if code:
            sys.exit(code)

    return wrapped


def print_output(output: Output) -> int:
    """Prints what a command returned; returns the exit code."""
    if wants_json():
        print_json(output.value)
    else:
        output.show()
    if output.problem is None:
        return output.code
    print_error(output.problem)
    return output.code or FAILED


def fail(message: str, code: int = FAILED, *, printed: bool = False) -> NoReturn:
    """Ends the command with an error, also as JSON unless the result was `printed`."""
    if interruption.received_signal():  # the interruption caused the failure
        raise KeyboardInterrupt
    if wants_json() and not printed:
        print_json_error(message)
    print_error(message)
    sys.exit(code)


def _console(*, stderr: bool, wide: bool = False) -> "Console":
    # imported here, because an instance prints with neither
    from service.reports.text_table import NARROWEST, WIDTH, HarmlessConsole

    console = HarmlessConsole(file=AsIs(sys.stderr if stderr else sys.stdout))
    # a pipe has no width; a terminal may be too wide or too narrow to read, or report a width of 0
    most = console.width if wide else WIDTH
    console.width = max(NARROWEST, min(console.width, most)) if console.is_terminal else WIDTH
    return console
