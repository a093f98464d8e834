"""Makes text harmless. Terminals obey control characters, direction marks and hidden characters deceive readers, a line
break forges a line, and a single value of a drop may be a hundred megabytes long.

All output passes through here: to the standard streams (config/streams.py), to logs and to reports. Escapes are those
of JSON, so JSON stays valid.
"""

from typing import Any

import msgspec

from config.invisible import visible

# Longer than any of our messages: only a list of columns, or a value, is ever cut.
MAX_CHARACTERS = 1000
MAX_LINES = 100  # of attribution
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


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
