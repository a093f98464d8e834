"""What the pages of the project say: headings, links, tables and commands."""

import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).resolve().parents[2]
PAGES = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))

_FENCE = re.compile(r"^ *```(\w*)[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_SPAN = re.compile(r"`([^`]+)`")
_ASSIGNMENT = re.compile(r"[A-Z_]+=\S*")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of `language`, also those in tabs, which are indented."""
    return [dedent(content) for found, content in _FENCE.findall(page.read_text()) if found == language]


def partners_blocks(language: str) -> list[str]:
    """The fenced blocks of `language` in all pages of partners."""
    return [block for page in sorted((ROOT / "docs/partners").glob("*.md")) for block in blocks(page, language)]


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return _FENCE.sub("", page.read_text())


def anchors(page: Path) -> set[str]:
    """What a link can name in the page, as GitHub makes it from headings."""
    headings = re.findall(r"^#+ +(.+)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def links(page: Path) -> list[str]:
    return _LINK.findall(prose(page))


def table_after(page: Path, marker: str) -> list[list[str]]:
    """The rows of the first table behind the comment ``<!-- marker: … -->``, without its head."""
    _, found, rest = page.read_text().partition(f"<!-- {marker}:")
    assert found, f"{name_of(page)} has no <!-- {marker}: ... -->"
    lines = rest.partition("-->")[2].strip().splitlines()
    rows: list[list[str]] = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return rows[2:]


def shown_commands(page: Path, program: str) -> list[list[str]]:
    """The arguments of every line of a console block that runs `program`."""
    lines = [line[2:] for block in blocks(page, "console") for line in block.splitlines() if line.startswith("$ ")]
    return [arguments for line in lines if (arguments := _arguments(line, program)) is not None]


def named_commands(page: Path, program: str) -> list[list[str]]:
    """The arguments of every code span in the prose that begins with `program`."""
    spans = [" ".join(span.split()) for span in _SPAN.findall(prose(page))]
    return [arguments for span in spans if (arguments := _arguments(span, program)) is not None]


def _arguments(line: str, program: str) -> list[str] | None:
    words = shlex.split(line, comments=True)
    while words and _ASSIGNMENT.fullmatch(words[0]):
        del words[0]
    return words[1:] if words and Path(words[0]).name == program else None


def written_page(title: str, text: str, *parts: str) -> str:
    """Returns the text of a page."""
    return "\n\n".join((f"# {title}", text, *parts)) + "\n"


def written_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
