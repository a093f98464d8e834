"""What commands print: results on standard output; errors, in one line, and all else on standard error."""

import functools
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn, ParamSpec

import click

from config import loading
from config.loading import Loaded
from config.settings import ENVIRONMENT_PREFIX, Settings, SettingsError
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
LOST = 3  # another publish finished first

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on standard output.")


def stdout() -> "Console":
    return _console(stderr=False)


def stderr() -> "Console":
    return _console(stderr=True)


def print_json(value: object) -> None:
    click.echo(json_text(value, indented=True))


def print_json_error(message: str) -> None:
    print_json({"error": {"message": shown(message)}})


def print_error(message: str) -> None:
    """Prints one line on standard error."""
    click.echo(f"forecast: {shown(message)}", err=True)


def shown(message: str) -> str:
    """`message` as one printable line, without keys that were given by mistake."""
    return masked(printable(message, None))


def load_settings(overrides: dict[str, object] | None = None) -> Loaded:
    return loading.load(overrides=overrides)


def default_settings() -> Loaded:
    return loading.load({name: value for name, value in os.environ.items() if not name.startswith(ENVIRONMENT_PREFIX)})


def data_folder_member(settings: Settings) -> dict[str, str]:
    """The JSON member of commands that act on the data folder."""
    return {"data_folder": str(settings.data_path.absolute())}


def tell_data_folder(settings: Settings) -> None:
    """The same for a person: a forgotten FORECAST_DATA_DIR is a common surprise."""
    print_dimly(f"data folder {settings.data_path.absolute()}")


def print_dimly(text: str) -> None:
    """Prints what explains a result, such as where it is, on standard error."""
    stderr().print(shown(text), style="dim", markup=False, soft_wrap=True)


def reports_errors(command: Callable[P, None]) -> Callable[P, None]:
    """Turns errors that a person can act on into one line and an exit code. Other errors are bugs and pass through."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()  # so that a full disk is an error here, not when the interpreter exits
        except BusyError as error:
            fail(str(error), LOST, as_json=bool(kwargs.get("as_json")))
        except (SettingsError, WarehouseError, KeyStoreError, StoreUnavailable, EmbeddedError) as error:
            fail(str(error), FAILED, as_json=bool(kwargs.get("as_json")))
        except OSError as error:  # a full disk or an unreadable folder is not a bug
            if error.filename == STDOUT:
                raise  # no more can be printed there: the program ends
            where = f"{error.filename}: " if error.filename else ""
            fail(f"{where}{error.strerror or error}", FAILED, as_json=bool(kwargs.get("as_json")))

    return wrapped


def fail(message: str, code: int = FAILED, *, as_json: bool = False) -> NoReturn:
    if interruption.asked():  # the interruption is why it failed
        raise KeyboardInterrupt
    if as_json:
        print_json_error(message)
    print_error(message)
    sys.exit(code)


def _console(*, stderr: bool) -> "Console":
    # here, because an instance prints with neither
    from service.reports.text_table import NARROWEST, WIDTH, HarmlessConsole

    console = HarmlessConsole(file=AsIs(sys.stderr if stderr else sys.stdout))
    # a pipe has no width of its own; a terminal may be wider or narrower than can be read, or call itself 0 wide
    console.width = max(NARROWEST, min(console.width, WIDTH)) if console.is_terminal else WIDTH
    return console
