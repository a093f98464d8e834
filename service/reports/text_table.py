"""Tables as reports and commands print them."""

from rich.table import Table

# Columns of text: the width of reports, and of output into a pipe.
WIDTH = 100
# Below this width, tables leave out details, and findings stand under their rule.
NARROW = 84


def text_table(*columns: str, numeric: tuple[str, ...] = ()) -> Table:
    made = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, justify="right" if column in numeric else "left", overflow="fold")
    return made
