"""Text for people: harmless, in one line, with sizes and durations that they can read.

A terminal obeys control characters, marks that reorder or hide text deceive its reader, a line break forges a line, and
a single value of a drop may be a hundred megabytes long. So all text passes through `printable` on its way out: to the
standard streams (streams.py), to logs and to reports. Escapes are those of JSON, so JSON stays valid.
"""

import re
import unicodedata
from datetime import timedelta
from typing import Any

import msgspec

# Longer than any of our messages: only a list of columns, or a value, is ever cut.
MAX_CHARACTERS = 1000
MAX_LINES = 100  # of attribution
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DURATION = re.compile(r"([0-9]{1,6})([smhdw])")
# Invisible characters, as code points, first to last. They come from text copied from web pages and documents, and from
# exported files. Rules for drops, messages, and errors for partners share this table.
INVISIBLE = (
    (0x00A0, 0x00A0),  # no-break space
    (0x00AD, 0x00AD),  # soft hyphen
    (0x034F, 0x034F),  # grapheme joiner
    (0x061C, 0x061C),  # mark of direction
    (0x115F, 0x1160),  # fillers of Hangul
    (0x1680, 0x1680),  # space of Ogham
    (0x17B4, 0x17B5),  # inherent vowels of Khmer
    (0x180B, 0x180F),  # variation selectors and vowel separator of Mongolian
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
    (0x1BCA0, 0x1BCA3),  # format controls of shorthand
    (0x1D173, 0x1D17A),  # format controls of music
    (0xE0000, 0xE0FFF),  # tags, variation selectors
)
BYTE_ORDER_MARK = "\ufeff"
# The same, encoded as UTF-8 and read as Latin-1.
MARK_READ_AS_LATIN_1 = "ï»¿"
_ANY = re.compile(f"{MARK_READ_AS_LATIN_1}|[{''.join(f'{chr(first)}-{chr(last)}' for first, last in INVISIBLE)}]")


def printable(text: str, longest: int | None = MAX_CHARACTERS) -> str:
    """Returns `text` as one line, with unprintable characters escaped, cut to `longest` characters.

    Unprintable characters are those that Unicode calls so (control characters, lone surrogates, unassigned characters,
    marks of direction, all spaces but the usual one), and invisible ones. Printable text stays the same.
    """
    cut = text if longest is None else text[: longest + 1]
    if not _is_printable(cut):
        cut = "".join(sign if _is_printable(sign) else escaped(sign) for sign in cut)
    return cut if longest is None or len(cut) <= longest else cut[: longest - 1] + "…"


def printable_lines(text: str) -> str:
    """Like `printable`, but keeps line breaks and never cuts."""
    return text if _is_printable(text) else "\n".join(printable(line, None) for line in text.split("\n"))


def json_text(value: object, *, indented: bool = False) -> str:
    """Returns `value` as JSON with printable text, on one line unless `indented`."""
    try:
        encoded = msgspec.json.encode(value, enc_hook=str)
    except UnicodeEncodeError:  # a lone surrogate, for example in a file name that is not UTF-8
        encoded = msgspec.json.encode(_printable(msgspec.to_builtins(value, enc_hook=str)))
    return printable_lines((msgspec.json.format(encoded, indent=2) if indented else encoded).decode())


def escaped(text: str) -> str:
    """Returns every character of `text` as its JSON escape."""
    return "".join(_SHORT.get(sign) or _units(sign) for sign in text)


def _is_printable(text: str) -> bool:
    return text.isprintable() and (text.isascii() or visible(text) == text)


def _units(sign: str) -> str:
    units = sign.encode("utf-16-be", "surrogatepass").hex(" ", 2).split()
    return "".join(f"\\u{unit}" for unit in units)


def printable_struct(struct: Any) -> Any:
    """Returns a copy of a frozen msgspec struct with all its text made printable and cut, at any depth."""
    return msgspec.structs.replace(
        struct, **{name: _printable(getattr(struct, name)) for name in struct.__struct_fields__}
    )


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, tuple | list):
        return tuple(map(_printable, value))
    if isinstance(value, dict):
        return {_printable(key): _printable(item) for key, item in value.items()}
    return printable_struct(value) if isinstance(value, msgspec.Struct) else value


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


def first_line(error: BaseException) -> str:
    """Returns the first line of the error's message, or its type if the message is empty."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def parse_duration(text: str) -> timedelta | None:
    """Returns the duration in `text`; None if it is malformed."""
    match = _DURATION.fullmatch(text)
    return timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else None


def in_words(seconds: float) -> str:
    """Formats `seconds` roughly, for people: "40 minutes", "31 days", "2.5 days"."""
    lengths = (("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1))
    unit, length = next((each for each in lengths if seconds >= each[1]), lengths[-1])
    number = round(seconds / length, 1)
    return f"{number:g} {unit}{'' if number == 1 else 's'}"


def format_bytes(size: int) -> str:
    """Formats `size` in MB or GB."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"
