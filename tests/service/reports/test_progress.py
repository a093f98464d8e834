"""A command of over a second shows its step, and how much of it is done, in a terminal only."""

import io

import pytest
from rich.console import Console

from service.reports import terminal


def shown(*steps: str, whole: float | None, is_terminal: bool = True) -> str:
    console = Console(file=io.StringIO(), force_terminal=is_terminal, width=120)
    with terminal.progress(console, whole) as progress:
        for step in steps:
            progress(step)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_pipe_shows_nothing() -> None:
    assert shown("comparing", whole=terminal.PUBLISH, is_terminal=False) == ""


@pytest.mark.parametrize(("whole", "share"), [(terminal.PUBLISH, " 32%"), (terminal.CHECK, " 58%")])
def test_a_terminal_shows_the_step_and_the_share_that_is_done(whole: float, share: str) -> None:
    last = shown("reading a.parquet", "comparing", whole=whole)
    assert "comparing" in last
    assert share in last


def test_without_known_steps_only_the_step_is_shown() -> None:
    assert "%" not in shown("3 of 4 servers", whole=None)


def test_markup_in_the_name_of_a_file_stays_text() -> None:
    assert "[red]a.parquet" in shown("reading [red]a.parquet", whole=terminal.PUBLISH)
