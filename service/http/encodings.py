"""Detects texts that were encoded once too often, or not as URLs are, and decodes them."""

import html
import re
from collections.abc import Callable
from urllib.parse import unquote

from config.text import as_utf8

_MOST_LAYERS = 4
_ESCAPE = re.compile(r"(?:%u|\\u|\\x)([0-9A-Fa-f]{4}|[0-9A-Fa-f]{2})")


def _without_escapes(text: str) -> str:
    """Returns the text; halves of surrogate pairs are joined, or replaced where one is missing."""
    characters = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
    return characters.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# The name of each, a pattern of its texts, and its decoder.
_ENCODINGS: tuple[tuple[str, "re.Pattern[str]", Callable[[str], str]], ...] = (
    ("has %u escapes, which are not for URLs", re.compile(r"%u[0-9A-Fa-f]{4}"), _without_escapes),
    ("was percent-encoded twice", re.compile(r"%[0-9A-Fa-f]{2}"), unquote),
    ("has HTML entities", re.compile(r"&(?:#[0-9]{2,5}|#[xX][0-9A-Fa-f]{2,4}|[A-Za-z]{2,8});"), html.unescape),
    ("has escapes of a program", re.compile(r"\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}"), _without_escapes),
    ("was encoded as UTF-8 twice", re.compile("[\xc2-\xf4][\x80-\xbf]"), as_utf8),
)  # fmt: skip


def encoded_in(text: str) -> tuple[str, str] | None:
    """Returns how `text`, decoded as part of a URL, is still encoded, and its decoded form; None if it is not."""
    said: dict[str, None] = {}
    for _ in range(_MOST_LAYERS):
        for name, sign, decode in _ENCODINGS:
            decoded = decode(text) if sign.search(text) else text
            if decoded != text and "\ufffd" not in decoded:  # else it only looks encoded, as %FACILITY% does
                said[name], text = None, decoded
                break
        else:
            break
    return (" and ".join(said), text) if said else None
