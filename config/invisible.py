"""Characters that nobody sees in a text: byte-order marks, zero-width characters, marks of direction.

They come with what is copied from web pages and documents, and with exported files. Rules for drops, messages, and
errors for partners share this table.
"""

import re
import unicodedata

# Code points, first to last.
INVISIBLE = (
    (0x00AD, 0x00AD),  # soft hyphen
    (0x034F, 0x034F),  # grapheme joiner
    (0x061C, 0x061C),  # mark of direction
    (0x180E, 0x180E),  # vowel separator
    (0x200B, 0x200F),  # zero width, and marks of direction
    (0x202A, 0x202E),  # embedding and overriding of directions
    (0x2060, 0x206F),  # word joiner, invisible operators, isolates
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFEFF, 0xFEFF),  # byte-order mark
)
BYTE_ORDER_MARK = "\ufeff"
# The same, encoded as UTF-8 and read as Latin-1.
MARK_READ_AS_LATIN_1 = "ï»¿"
_ANY = re.compile(f"{MARK_READ_AS_LATIN_1}|[{''.join(f'{chr(first)}-{chr(last)}' for first, last in INVISIBLE)}]")


def visible(text: str) -> str:
    """Returns `text` without invisible characters."""
    return _ANY.sub("", text)


def invisible_in(text: str) -> str | None:
    """Names the first invisible character of `text`; None if it has none."""
    found = _ANY.search(text)
    if found is None:
        return None
    if found[0] in (BYTE_ORDER_MARK, MARK_READ_AS_LATIN_1):
        return "an invisible character (U+FEFF, byte-order mark)"
    return f"an invisible character (U+{ord(found[0]):04X}, {unicodedata.name(found[0], 'unnamed').lower()})"


def as_utf8(text: str) -> str:
    """Returns the text whose UTF-8 was read as Latin-1, or `text` itself if it is no such text."""
    try:
        return text.encode("latin-1").decode()
    except UnicodeError:
        return text
