"""The reference of the command line: a page for the program, and one for each group of commands."""

import re
from collections.abc import Collection, Iterator, Mapping

import click

from service.cli.main import main
from tests.support.markdown import written_page, written_table

_PROGRAM = "forecast"
_SOURCE = "service/cli/"
_SUMMARY_WIDTH = 200  # of a command in the list of its group: longer ones are cut
_PARAGRAPHS = re.compile(r"\n\s*\n")
_AS_IT_IS = "\b\n"  # click's mark before a paragraph that keeps its lines


def render_commands() -> Mapping[str, str]:
    """Returns the text of each page by its name."""
    context = _context(main, _PROGRAM, None)
    groups = {name: group for name, group in _commands_of(main, context) if isinstance(group, click.Group)}
    single = [(name, command) for name, command in _commands_of(main, context) if name not in groups]
    pages = {
        f"{name}.md": written_page(
            _SOURCE,
            f"{_PROGRAM} {name}",
            *_description(group, _context(group, f"{_PROGRAM} {name}", context)),
            *_sections(_commands_of(group, context), f"{_PROGRAM} {name}", context),
        )
        for name, group in groups.items()
    }
    pages["index.md"] = written_page(
        _SOURCE,
        "Command line",
        "Every command, its options and its exit codes. In a checkout, the program is `.venv/bin/forecast`.",
        *_description(main, context),
        written_table(
            ("command", "what it does"),
            [_listed(*found, groups) for found in _commands_of(main, context)],
        ),
        *_sections(single, _PROGRAM, context),
    )
    return pages


def _commands_of(group: click.Group, context: click.Context) -> list[tuple[str, click.Command]]:
    found = ((name, group.get_command(context, name)) for name in group.list_commands(context))
    return [(name, command) for name, command in found if command is not None and not command.hidden]


def _listed(name: str, command: click.Command, groups: Collection[str]) -> tuple[str, str]:
    path = f"{_PROGRAM} {name}"
    target = f"{name}.md" if name in groups else f"#{path.replace(' ', '-')}"
    return f"[`{path}`]({target})", command.get_short_help_str(_SUMMARY_WIDTH)


def _sections(commands: list[tuple[str, click.Command]], path: str, parent: click.Context) -> Iterator[str]:
    for name, command in commands:
        context = _context(command, f"{path} {name}", parent)
        yield f"## {path} {name}"
        yield f"```text\n{' '.join([f'{path} {name}', *command.collect_usage_pieces(context)])}\n```"
        yield from _description(command, context)
        yield written_table(("option", "meaning"), [_option(*record) for record in _options(command, context)])


def _context(command: click.Command, path: str, parent: click.Context | None) -> click.Context:
    name = path.rpartition(" ")[2]
    return click.Context(command, parent=parent, info_name=name, help_option_names=["-h", "--help"])


def _description(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yields the paragraphs of a command's help, with lists and examples as code."""
    for paragraph in _PARAGRAPHS.split((command.help or "").strip()):
        kept = paragraph.partition(_AS_IT_IS)[2]
        if not kept:
            yield " ".join(paragraph.split())
            continue
        first, *lines = (line.strip() for line in kept.splitlines())
        yield first
        yield "\n".join(("```text", *lines, "```"))


def _options(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    records = (one.get_help_record(context) for one in command.get_params(context))
    return (record for record in records if record is not None and record[1])  # arguments have no meaning of their own


def _option(names: str, meaning: str) -> tuple[str, str]:
    return f"`{names}`", meaning
