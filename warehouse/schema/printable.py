"""What strangers wrote - names of files and columns, values, footers - made fit to be shown and kept.

A terminal obeys control characters, and no report is the better for a value of a hundred megabytes.
"""

from typing import Any

import msgspec

# Longer than any message of ours; what is cut is a list of columns, or somebody's idea of a value.
MAX_CHARACTERS = 1000
MAX_LINES = 100
# Controls (C0, DEL, C1), what reorders or hides text, line separators, and halves of characters.
_UNFIT = (
    (0x00, 0x1F),
    (0x7F, 0x9F),
    (0x061C, 0x061C),
    (0x200B, 0x200F),
    (0x2028, 0x202E),
    (0x2060, 0x206F),
    (0xD800, 0xDFFF),
    (0xFEFF, 0xFEFF),
)
_ESCAPES = {
    code: chr(code).encode("unicode_escape").decode() for first, last in _UNFIT for code in range(first, last + 1)
}


def printable(text: str, longest: int = MAX_CHARACTERS) -> str:
    """`text` with what is unfit to be shown escaped, cut to `longest` characters. Of what is plain, nothing changes."""
    escaped = text[: longest + 1].translate(_ESCAPES)
    return escaped if len(escaped) <= longest else escaped[: longest - 1] + "…"


def printable_struct(struct: Any) -> Any:
    """A copy of a frozen msgspec struct, all text within made plain, whatever it is nested in."""
    return msgspec.structs.replace(struct, **{name: _plain(getattr(struct, name)) for name in struct.__struct_fields__})


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    return printable_struct(value) if isinstance(value, msgspec.Struct) else value
