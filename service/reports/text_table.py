"""Tables, and the console that prints them: markup and control characters in untrusted text have no effect."""

from collections.abc import Iterable
from typing import Any

from rich import markup
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from config.text import printable, printable_lines

# Columns of text: the width of reports, and of output into a pipe.
WIDTH = 100
# Below this width, tables leave out details, and findings are printed under their rule.
NARROW = 84
NARROWEST = 40
_NAMES = 12  # columns of the names of facts, so that tables below each other are aligned


class HarmlessConsole(Console):
    """Sends only its own control characters to a terminal."""

    def __init__(self, **more: Any) -> None:
        super().__init__(highlight=False, emoji=False, **more)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable_lines(segment.text))


class TextTable(Table):
    """A table whose strings are plain text. A cell with a style is a Text."""

    def add_row(self, *cells: RenderableType | None, **more: Any) -> None:
        super().add_row(*(Text(printable(cell, None)) if isinstance(cell, str) else cell for cell in cells), **more)


def plain(text: str) -> str:
    """Returns untrusted `text` for use within markup: one line, harmless, and without markup of its own."""
    return markup.escape(printable(text, None))  # noqa: TID251 - the one place


def text_table(*columns: str, numeric: tuple[str, ...] = (), whole: tuple[str, ...] = ()) -> Table:
    """Returns a table. `numeric` columns are aligned to the right; cells of `whole` columns are never broken."""
    table = TextTable(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        justify: JustifyMethod = "right" if column in numeric else "left"
        table.add_column(plain(column), justify=justify, overflow="fold", no_wrap=column in whole)
    return table


def facts_table(rows: Iterable[tuple[str, RenderableType]]) -> Table:
    """Returns a table with a name and its facts on each line."""
    table = TextTable.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="dim", min_width=_NAMES)
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table
