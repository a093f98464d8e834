"""The command line as a person or a script meets it: arguments in; exit code, standard output and error out."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from service.cli import main
from service.embedded.owner import EmbeddedServers
from tests.support.drops import write_drop
from tests.support.instance import NO_DRIFT_LIMITS
from tests.support.publishing import reading_here


@dataclass(frozen=True)
class Done:
    """What one command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def error(self) -> str:
        """The message of a failure: one line on standard error, the same as JSON on standard output if asked."""
        line = self.err.strip()
        assert "\n" not in line
        message = line.removeprefix("forecast: ")
        assert message != line
        assert self.out == "" or self.json == {"error": {"message": message}}
        return message


@dataclass
class Cli:
    """Runs commands in this process, on a data folder of the test's and with nothing set but `settings`."""

    data: Path
    settings: dict[str, str] = field(default_factory=dict)
    reading: Callable[[], AbstractContextManager[None]] = reading_here

    def __call__(self, *arguments: str, typed: str | None = None, **settings: object) -> Done:
        given = self.settings | {name: str(value) for name, value in settings.items()}
        env: dict[str, str | None] = {f"FORECAST_{name.upper()}": value for name, value in given.items()}
        base = {
            "FORECAST_DATA_DIR": str(self.data),
            "FORECAST_LIMITS": NO_DRIFT_LIMITS,
            "FORECAST_INBOX_SETTLE": "0",
        }
        with self.reading():
            result = CliRunner().invoke(main, arguments, input=typed, env=base | env)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception  # a traceback, where a person would see it
        return Done(result.exit_code, result.stdout, result.stderr)


@pytest.fixture
def cli(short: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    for name in list(os.environ):
        if name.startswith("FORECAST_"):
            monkeypatch.delenv(name)
    return Cli(short / "data")


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    return write_drop(tmp_path / "drop")


@pytest.fixture(scope="session")
def made(short_folder: Path) -> tuple[Path, str]:
    """A data folder to copy, with one release, and its id."""
    with pytest.MonkeyPatch.context() as patched:
        for name in list(os.environ):
            if name.startswith("FORECAST_"):
                patched.delenv(name)
        made = Cli(short_folder / "data of commands")
        done = made("extracts", "publish", str(write_drop(short_folder / "drop of commands")))
    assert done.code == 0, done.err
    return made.data, done.out.strip()


@pytest.fixture
def release(cli: Cli, made: tuple[Path, str]) -> str:
    """The current release of the test's data folder, of the same figures as `drop`."""
    shutil.copytree(made[0], cli.data)
    return made[1]


@pytest.fixture
def running(cli: Cli) -> Iterator[list[int]]:
    """Process ids of the embedded key store that an instance keeps running."""
    servers = EmbeddedServers(cli.data, ("keys",))
    servers.ensure()
    yield servers_of(cli.data)
    servers.stop()


def issue(cli: Cli, partner: str = "acme", *more: str) -> dict[str, Any]:
    """The JSON of a new key."""
    done = cli("keys", "issue", "--partner", partner, "--json", *more)
    assert done.code == 0, done.err
    issued: dict[str, Any] = done.json
    return issued


def ids(cli: Cli, *more: str) -> list[str]:
    return [view["key_id"] for view in cli("keys", "list", "--json", *more).json]


def servers_of(data: Path) -> list[int]:
    """Process ids of the servers whose files are in `data`."""
    folders = [folder for folder in Path("/proc").glob("[0-9]*") if (folder / "cwd").is_symlink()]
    return [int(folder.name) for folder in folders if _works_in(folder, data)]


def _works_in(process: Path, data: Path) -> bool:
    try:
        return (process / "cwd").readlink().is_relative_to(data)
    except OSError:
        return False
