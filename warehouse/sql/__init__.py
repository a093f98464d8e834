"""Every SQL statement of the warehouse, by name, from the .sql files beside this module.

A statement starts with ``-- name: <name>``, then has at least one comment line that describes it, and ends where the
next one starts. Comment lines such as ``-- cause: a join`` below the description are its header: the fields of a rule.
Our code fills ``{placeholders}`` with identifiers and expressions; values are bound to ``?``.
"""

import re
from functools import cache
from importlib import resources
from pathlib import Path

import msgspec

from config.text import first_line

_NAME = re.compile(r"^-- name: ([a-z0-9_]+)\s*$", re.MULTILINE)
_FIELD = re.compile(r"-- (rule|unit|among|of|explains|finding|cause|remedy): (.+)")
# not str.format, which would take the braces of a regular expression for placeholders
_PLACEHOLDER = re.compile(r"\{([a-z]+)\}")
_WRAPPED = re.compile(r'"exception_message":"((?:[^"\\]|\\.)*)"')


class Statement(msgspec.Struct, frozen=True):
    """One named statement. `statements` parses all of them once per process and caches them."""

    name: str
    file: str  # its name
    description: str  # the comment lines below the name, joined
    header: dict[str, str]  # by field
    text: str  # the SQL, with its placeholders unfilled


def statement(name: str, **parts: str) -> str:
    """Returns the text of statement `name`, with its placeholders filled from `parts`.

    Raises:
        KeyError: if there is no such statement, or `parts` lacks a placeholder.
    """
    return _PLACEHOLDER.sub(lambda found: parts[found[1]], statements()[name].text)


def quoted(text: str) -> str:
    """Returns `text`, escaped for use inside a single-quoted literal."""
    return text.replace("'", "''")


def pattern(path: Path) -> str:
    """Returns a pattern for DuckDB that matches the file at `path` and no other: glob characters are escaped."""
    return re.sub(r"([*?\[])", r"[\1]", str(path))


def rows_of(path: Path) -> str:
    """Returns the FROM expression for a file that we wrote. ``key=value`` folders above it add no columns."""
    return f"read_parquet('{quoted(pattern(path))}', hive_partitioning = false)"


def reason(error: Exception) -> str:
    """Returns the first line of a DuckDB error. The other lines are hints for the author of the statement."""
    line = first_line(error)
    # DuckDB wraps an error from another thread in JSON
    within = _WRAPPED.search(line)
    return within[1].replace('\\"', '"') if within else line


@cache
def statements() -> dict[str, Statement]:
    """Returns every statement by name. Raises ValueError if two have the same name."""
    found: dict[str, Statement] = {}
    for file in sorted(resources.files(__name__).iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".sql"):
            for parsed in parse_statements(file.read_text(encoding="utf-8"), file.name):
                if parsed.name in found:
                    raise ValueError(f"{file.name}: statement {parsed.name} is defined twice")
                found[parsed.name] = parsed
    return found


def parse_statements(text: str, origin: str) -> list[Statement]:
    """Returns the statements of one file, called `origin` in errors.

    Raises ValueError if one lacks description or body.
    """
    pieces = _NAME.split(text)
    parsed = []
    for name, body in zip(pieces[1::2], pieces[2::2], strict=True):
        lines = body.strip().splitlines()
        fields = [found for line in lines if (found := _FIELD.fullmatch(line))]
        headers = {found[0] for found in fields}
        comments = [line for line in lines if line.startswith("--") and line not in headers]
        code = "\n".join(line for line in lines if not line.startswith("--")).strip()
        if not comments or not code:
            raise ValueError(f"{origin}: statement {name} lacks its description or its body")
        description = " ".join(line.lstrip("- ") for line in comments)
        parsed.append(Statement(name, origin, description, {found[1]: found[2] for found in fields}, code))
    return parsed
