"""Makes text from drops (names of files and columns, values, footers) safe to print and to keep.

A terminal obeys control characters, and a single value may be a hundred megabytes long.
"""

from typing import Any

import msgspec

from config.invisible import INVISIBLE

# Longer than any of our messages: what gets cut is a list of columns, or a value.
MAX_CHARACTERS = 1000
MAX_LINES = 100  # of attribution
# Code points, first to last: controls (C0, DEL, C1), line separators, surrogates, marks that reorder or hide text.
_UNPRINTABLE = ((0x00, 0x1F), (0x7F, 0x9F), (0x2028, 0x2029), (0xD800, 0xDFFF), *INVISIBLE)
_ESCAPES = {
    code: chr(code).encode("unicode_escape").decode() for first, last in _UNPRINTABLE for code in range(first, last + 1)
}


def printable(text: str, longest: int = MAX_CHARACTERS) -> str:
    """`text` with unprintable characters escaped, cut to `longest` characters. Printable text stays as it is."""
    escaped = text[: longest + 1].translate(_ESCAPES)
    return escaped if len(escaped) <= longest else escaped[: longest - 1] + "…"


def printable_struct(struct: Any) -> Any:
    """A copy of a frozen msgspec struct with all its text made printable, at any depth."""
    return msgspec.structs.replace(
        struct, **{name: _printable(getattr(struct, name)) for name in struct.__struct_fields__}
    )


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, tuple):
        return tuple(_printable(item) for item in value)
    if isinstance(value, dict):
        return {_printable(key): _printable(item) for key, item in value.items()}
    return printable_struct(value) if isinstance(value, msgspec.Struct) else value
