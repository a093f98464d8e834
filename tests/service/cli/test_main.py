"""Every command: its help, its examples, and what it says to wrong usage."""

import shlex
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from service.cli import main
from tests.service.conftest import Cli


def walk(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from walk(found, (*path, name))


COMMANDS = dict(walk(main))
GROUPS = [path for path, command in COMMANDS.items() if isinstance(command, click.Group)]
LEAVES = [path for path, command in COMMANDS.items() if not isinstance(command, click.Group)]


def examples(path: tuple[str, ...]) -> list[list[str]]:
    """The arguments of each example in the help of a command; variables before it and a pipe after it are left out."""
    found = []
    for line in (COMMANDS[path].help or "").splitlines():
        words = line.strip().replace("KEY=$(", "").split("|")[0].split("  ")[0].strip()
        while words.partition(" ")[0].startswith("FORECAST_") and "=" in words.partition(" ")[0]:
            words = words.partition(" ")[2]
        if words.startswith("forecast "):
            found.append(shlex.split(words)[1:])
    return found


def test_every_command_has_help_with_examples(cli: Cli) -> None:
    for path in COMMANDS:
        done = cli(*path, "--help")
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith("Usage: ")
        assert cli(*path, "-h").out == done.out
        assert any(tuple(example[: len(path)]) == path for example in examples(path))


def test_every_command_says_its_exit_codes_and_can_print_json(cli: Cli) -> None:
    for path in LEAVES:
        options, _, codes = cli(*path, "--help").out.partition("Exit codes: ")
        said = " ".join(codes.split())
        assert said.startswith("0 ")
        assert " 2 wrong usage" in said
        assert "--json" in options + codes


def test_the_list_of_commands_says_of_each_what_it_does(cli: Cli) -> None:
    for path in GROUPS:
        for line in cli(*path, "--help").out.partition("Commands:\n")[2].splitlines():
            assert line.endswith("."), line
            assert not line.endswith("..."), line


def test_every_example_is_right() -> None:
    for path in COMMANDS:
        for words in examples(path):
            arguments, command = list(words), COMMANDS[()]
            while isinstance(command, click.Group):
                found = command.get_command(click.Context(command), arguments.pop(0))
                assert found is not None, words
                command = found
            # without callbacks, because a confirmation would prompt
            # commands keep the help option of their first context
            context = click.Context(command, help_option_names=["-h", "--help"])
            command.make_parser(context).parse_args(arguments)


def slipped(name: str) -> str:
    """`name` with its last two letters in the wrong order, or doubled."""
    return f"{name[:-2]}{name[-1]}{name[-2]}" if name[-1] != name[-2] else name + name[-1]


def test_a_mistyped_command_gets_the_right_one_and_an_unknown_one_the_list(cli: Cli) -> None:
    for path in GROUPS:
        for name in (found[-1] for found in COMMANDS if found[:-1] == path and found != path):
            done = cli(*path, slipped(name))
            assert (done.code, done.out) == (2, "")
            assert f"'{name}'" in done.err.partition("Did you mean")[2]
        done = cli(*path, "xyzzy")
        assert done.code == 2
        assert done.err.endswith(f"`{' '.join(('forecast', *path))} --help` lists the commands.\n")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (("pubish",), "'forecast extracts publish'"),
        (("publish", "drops/2026-10"), "'forecast extracts publish'"),
        (
            ("list",),
            "'forecast extracts list' or 'forecast keys list' or 'forecast plans list' or 'forecast partners list'",
        ),
        (("extracts", "issue"), "'forecast keys issue'"),
        (("extracts", "rotate"), "'forecast keys rotate'"),
        (("keys", "usage"), "'forecast usage'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_command_of_another_group_is_named_in_full(cli: Cli, typed: tuple[str, ...], meant: str) -> None:
    done = cli(*typed)
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith(f"Did you mean {meant}?\n")


def test_a_mistyped_option_gets_the_right_one(cli: Cli) -> None:
    for path in COMMANDS:
        for parameter in COMMANDS[path].get_params(click.Context(COMMANDS[path], help_option_names=["-h", "--help"])):
            for name in (each for each in parameter.opts if each.startswith("--")):
                done = cli(*path, slipped(name))
                assert (done.code, done.out) == (2, "")
                assert f"'{name}'" in done.err.partition("Did you mean")[2]


def test_wrong_usage_is_json_too(cli: Cli) -> None:
    for arguments, said in (
        (("keys", "list", "--json", "--status", "lost"), "'lost' is not one of"),
        (("keys", "revoke", "--json"), "Missing argument 'KEY_ID'"),
        (("extracts", "nothing", "--json"), "No such command 'nothing'"),
    ):
        done = cli(*arguments)
        assert done.code == 2
        assert said in done.json["error"]["message"]
        assert said in done.err


def test_a_group_alone_shows_its_help(cli: Cli) -> None:
    for path in ((), ("keys",), ("extracts",)):
        done = cli(*path)
        assert done.code == 2
        assert "Commands:" in done.err


def test_the_version_is_printed(cli: Cli) -> None:
    assert cli("--version").out.startswith("forecast, version ")


def test_commands_that_read_no_release_start_without_duckdb() -> None:
    modules = ", ".join(
        f"service.cli.{name}" for name in ("status.command", "status.top", "keys.commands", "usage.command")
    )
    code = f"import sys, {modules}; print({{'duckdb', 'pyarrow', 'warehouse.drops'}} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
