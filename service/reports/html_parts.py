"""Parts of pages: tables, charts with captions, and untrusted text, which is always escaped."""

from collections.abc import Iterable, Sequence
from html import escape

from config.text import printable
from service.reports import wording


def key(kind: str) -> str:
    swatch = '<span class="swatch {} {}"></span>'.format
    return f'<p class="key">{swatch(kind, "old")}current release {swatch(kind, "new")}this drop</p>'


def text(value: str) -> str:
    """Returns `value`, which may come from a drop, escaped for a page."""
    return escape(printable(value))


def name(value: str) -> str:
    """Returns a long name with line-break opportunities."""
    return text(value).replace("_", "_<wbr>").replace("/", "/<wbr>")


def pair(old: int | None, new: int | None) -> tuple[str, str, str]:
    return wording.number(old), wording.number(new), wording.relative_change(old, new)


def row(head: str, *cells: str) -> str:
    """Returns a row. Cells that are empty or hold a number are right-aligned."""
    columns = [
        f"<td>{text(cell)}</td>" if cell[:1].isalpha() else f'<td class="number">{text(cell)}</td>' for cell in cells
    ]
    return f'<tr><th scope="row">{text(head)}</th>{"".join(columns)}</tr>'


def table(caption: str, heads: Sequence[str], rows: Iterable[str], *, numeric: Sequence[str] = ()) -> str:
    kinds = [' class="number"' if head in numeric else "" for head in heads]
    columns = "".join(f'<th scope="col"{kind}>{head}</th>' for head, kind in zip(heads, kinds, strict=True))
    return (
        f'<div class="wide"><table><caption>{caption}</caption><thead><tr>{columns}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def figure(title: str, caption: str, chart: str, *more: str) -> str:
    below = "".join(more)
    return f"<section><h3>{title}</h3><figure><figcaption>{caption}</figcaption>{chart}{below}</figure></section>"
