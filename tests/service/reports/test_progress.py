"""A slow command shows its step and the time that it has taken, in a terminal only."""

import io

from rich.console import Console

from service.reports import terminal


def shown(*steps: str, is_terminal: bool = True) -> str:
    console = Console(file=io.StringIO(), force_terminal=is_terminal, width=120)
    with terminal.progress(console) as progress:
        for step in steps:
            progress(step)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_pipe_shows_nothing() -> None:
    assert shown("comparing", is_terminal=False) == ""


def test_a_terminal_shows_the_step_and_the_time() -> None:
    last = shown("reading a.parquet", "comparing")
    assert "comparing" in last
    assert "0:00:0" in last


def test_markup_in_the_name_of_a_file_stays_text() -> None:
    assert "[red]a.parquet" in shown("reading [red]a.parquet")
