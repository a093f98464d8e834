"""Invisible characters in a text: byte-order marks, zero-width characters, marks of direction.

They come from text copied from web pages and documents, and from exported files. Rules for drops, messages, and errors
for partners share this table.
"""

import re
import unicodedata

# Code points, first to last.
INVISIBLE = (
    (0x00A0, 0x00A0),  # no-break space
    (0x00AD, 0x00AD),  # soft hyphen
    (0x034F, 0x034F),  # grapheme joiner
    (0x061C, 0x061C),  # mark of direction
    (0x115F, 0x1160),  # fillers of Hangul
    (0x1680, 0x1680),  # space of Ogham
    (0x180E, 0x180E),  # vowel separator
    (0x2000, 0x200F),  # spaces of every width, zero width, and marks of direction
    (0x2028, 0x202F),  # separators, embedding and overriding of directions, narrow no-break space
    (0x205F, 0x206F),  # mathematical space, word joiner, invisible operators, isolates
    (0x2800, 0x2800),  # blank of Braille
    (0x3000, 0x3000),  # ideographic space
    (0x3164, 0x3164),  # filler of Hangul
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFEFF, 0xFEFF),  # byte-order mark
    (0xFFA0, 0xFFA0),  # filler of Hangul
    (0xFFF9, 0xFFFB),  # annotations
    (0xE0000, 0xE007F),  # tags
)
BYTE_ORDER_MARK = "\ufeff"
# The same, encoded as UTF-8 and read as Latin-1.
MARK_READ_AS_LATIN_1 = "ï»¿"
_ANY = re.compile(f"{MARK_READ_AS_LATIN_1}|[{''.join(f'{chr(first)}-{chr(last)}' for first, last in INVISIBLE)}]")


def visible(text: str) -> str:
    """Returns `text` without invisible characters, and with the usual space for every other one."""
    return _ANY.sub(lambda found: " " if found[0].isspace() else "", text)


def invisible_in(text: str) -> str | None:
    """Names the first invisible character of `text`; None if it has none."""
    found = _ANY.search(text)
    if found is None:
        return None
    if found[0] in (BYTE_ORDER_MARK, MARK_READ_AS_LATIN_1):
        return "an invisible character (U+FEFF, byte-order mark)"
    return f"an invisible character (U+{ord(found[0]):04X}, {unicodedata.name(found[0], 'unnamed').lower()})"


def as_utf8(text: str) -> str:
    """Returns the original of a `text` whose UTF-8 was read as Latin-1, or else `text` itself."""
    try:
        return text.encode("latin-1").decode()
    except UnicodeError:
        return text
