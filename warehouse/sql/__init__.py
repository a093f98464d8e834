"""Every SQL statement of the warehouse, by name, from the .sql files beside this module.

A statement begins with ``-- name: <name>``, is followed by at least one comment line that describes it, and ends
where the next begins. ``{placeholders}`` stand for identifiers and expressions of ours; values are parameters (``?``).
"""

import re
from functools import cache
from importlib import resources
from pathlib import Path

import msgspec

from config.first_line import first_line

_NAME = re.compile(r"^-- name: ([a-z0-9_]+)\s*$", re.MULTILINE)
# not str.format: the braces of a regular expression are no placeholder
_PLACEHOLDER = re.compile(r"\{([a-z]+)\}")
_WRAPPED = re.compile(r'"exception_message":"((?:[^"\\]|\\.)*)"')


class Statement(msgspec.Struct, frozen=True):
    name: str
    description: str
    text: str


def statement(name: str, **parts: str) -> str:
    """The text of statement `name`, its placeholders filled with `parts`.

    Raises:
        KeyError: if there is no such statement, or a placeholder is not given.
    """
    return _PLACEHOLDER.sub(lambda found: parts[found[1]], statements()[name].text)


def quoted(text: str) -> str:
    """`text` as the inside of a literal between single quotes."""
    return text.replace("'", "''")


def pattern(path: Path) -> str:
    """What DuckDB must be given to read the file at `path` and no other: its glob characters taken literally."""
    return re.sub(r"([*?\[])", r"[\1]", str(path))


def rows_of(path: Path) -> str:
    """What to select from for the rows of our own file at `path`; key=value folders above it are no columns of ours."""
    return f"read_parquet('{quoted(pattern(path))}', hive_partitioning = false)"


def reason(error: Exception) -> str:
    """The first line of what DuckDB says; what follows are hints for whoever wrote the statement."""
    line = first_line(error)
    # what went wrong in a thread of its own is wrapped in JSON
    within = _WRAPPED.search(line)
    return within[1].replace('\\"', '"') if within else line


@cache
def statements() -> dict[str, Statement]:
    found: dict[str, Statement] = {}
    for file in sorted(resources.files(__name__).iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".sql"):
            for parsed in parse_statements(file.read_text(encoding="utf-8"), file.name):
                if parsed.name in found:
                    raise ValueError(f"{file.name}: statement {parsed.name} is there twice")
                found[parsed.name] = parsed
    return found


def parse_statements(text: str, origin: str) -> list[Statement]:
    """The statements of one file. Raises ValueError where one lacks its description or its body."""
    pieces = _NAME.split(text)
    parsed = []
    for name, body in zip(pieces[1::2], pieces[2::2], strict=True):
        lines = body.strip().splitlines()
        comments = [line for line in lines if line.startswith("--")]
        code = "\n".join(line for line in lines if not line.startswith("--")).strip()
        if not comments or not code:
            raise ValueError(f"{origin}: statement {name} lacks its description or its body")
        parsed.append(Statement(name, " ".join(line.lstrip("- ") for line in comments), code))
    return parsed
