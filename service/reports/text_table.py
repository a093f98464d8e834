"""Tables, and what prints them: text from elsewhere is plain there, whatever markup or control characters it has."""

from collections.abc import Iterable
from typing import Any

from rich import markup
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from config.printable import printable, printable_lines

# Columns of text: the width of reports, and of output into a pipe.
WIDTH = 100
# Below this width, tables leave out details, and findings stand under their rule.
NARROW = 84
NARROWEST = 40


class HarmlessConsole(Console):
    """Gives a terminal no control characters but its own."""

    def __init__(self, **more: Any) -> None:
        super().__init__(highlight=False, emoji=False, **more)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable_lines(segment.text))


class TextTable(Table):
    """A table whose strings are plain text; a cell with a style is a Text."""

    def add_row(self, *cells: RenderableType | None, **more: Any) -> None:
        super().add_row(*(Text(printable(cell, None)) if isinstance(cell, str) else cell for cell in cells), **more)


def plain(text: str) -> str:
    """`text` from elsewhere, to stand within markup: one line, harmless, and no markup itself."""
    return markup.escape(printable(text, None))  # noqa: TID251 - the one place


def text_table(*columns: str, numeric: tuple[str, ...] = ()) -> Table:
    made = TextTable(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(plain(column), justify="right" if column in numeric else "left", overflow="fold")
    return made


def facts_table(rows: Iterable[tuple[str, RenderableType]], width: int | None = None) -> Table:
    """A name and what is said of it on each line."""
    made = TextTable.grid(padding=(0, 2, 0, 0))
    made.add_column(no_wrap=True, style="dim", min_width=width)
    made.add_column(overflow="fold")
    for row in rows:
        made.add_row(*row)
    return made
