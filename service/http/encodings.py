"""Texts that were encoded once too often, or in another way than URLs are: how, and what they stand for."""

import html
import re
from collections.abc import Callable
from urllib.parse import unquote

import msgspec

from config.invisible import as_utf8

_MOST_LAYERS = 4
_ESCAPE = re.compile(r"(?:%u|\\u|\\x)([0-9A-Fa-f]{4}|[0-9A-Fa-f]{2})")


class Encoding(msgspec.Struct, frozen=True):
    """One way to encode a text. `sign` is found in it then."""

    said: str
    sign: "re.Pattern[str]"
    decode: Callable[[str], str]


def _without_escapes(text: str) -> str:
    """Returns the text; halves of surrogate pairs are joined, or replaced where one is missing."""
    characters = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
    return characters.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_ENCODINGS = (
    Encoding("has %u escapes, which are not for URLs", re.compile(r"%u[0-9A-Fa-f]{4}"), _without_escapes),
    Encoding("was percent-encoded twice", re.compile(r"%[0-9A-Fa-f]{2}"), unquote),
    Encoding("has HTML entities", re.compile(r"&(?:#[0-9]{2,5}|#[xX][0-9A-Fa-f]{2,4}|[A-Za-z]{2,8});"), html.unescape),
    Encoding("has escapes of a program", re.compile(r"\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}"), _without_escapes),
    Encoding("was encoded as UTF-8 twice", re.compile("[\xc2-\xf4][\x80-\xbf]"), as_utf8),
)  # fmt: skip


def encoded_in(text: str) -> tuple[str, str] | None:
    """How `text`, which was decoded as part of a URL, is still encoded, and what it stands for; None if it is not."""
    said: dict[str, None] = {}
    for _ in range(_MOST_LAYERS):
        for encoding in _ENCODINGS:
            decoded = encoding.decode(text) if encoding.sign.search(text) else text
            if decoded != text and "\ufffd" not in decoded:  # else it only looks so, as %FACILITY% does
                said[encoding.said], text = None, decoded
                break
        else:
            break
    return (" and ".join(said), text) if said else None
