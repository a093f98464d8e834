"""Reads what a text was probably meant to be: a ZIP code, a place, a county's code, a day, a text before it was encoded
once too often, or no value at all.

No function reads data. A value may be as long as the address, so only its beginning is read, and a long one costs no
more than a short one.
"""

import html
import re
from calendar import monthrange
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from urllib.parse import unquote

from config.text import as_utf8, visible
from service.request.parameters import LONGEST, echoed
from warehouse.places.names import state_of
from warehouse.places.spellings import split_state

_MOST_LISTED = 100  # ZIP codes
_MOST_LAYERS = 4
_ESCAPE = re.compile(r"(?:%u|\\u|\\x)([0-9A-Fa-f]{4}|[0-9A-Fa-f]{2})")
# Texts that programs send for a variable without a value, or that stand where a value has to be filled in.
_UNSET = re.compile(
    r"undefined|null|none|nan|nat|nil|na|n/?a|void|true|false|test|string|example|foo|x{3,}|your[ _-]?.*"
    r"|empty|blank|missing|tbd|not (?:available|set|found|known)|[-_.\"']+"
    r"|\((?:null|none)\)|\[object object\]|#(?:n/a|ref!|value!|name\?|null!)|\$?\{.*\}|<.*>|\$\(?[\w.]+\)?"
    r"|%+\(?\w*\)?[%sd]+|[:@][a-z_]\w*|\[[a-z_ -]+\]"
    r"|(?:zip|postal|city|state|county)(?:[ _-]?(?:code|name|fips|fips[ _-]code))?",
    re.IGNORECASE,
)
_PADDED = "".maketrans("OoIlL", "00111")
_QUOTED_ZIP = re.compile(r"[\"']?([0-9]{4,5})[\"']?")
_PLUS_FOUR = re.compile(r"[0-9]{5}.[0-9]{4}")
# A ZIP code after or before its city or address.
_ADDRESS = re.compile(
    r".*[A-Za-z].*?(?<![0-9])([0-9]{5})(?:-[0-9]{4})?|([0-9]{5})(?:-[0-9]{4})?[,\s]+[A-Za-z .,]+", re.DOTALL
)
_NUMBER = re.compile(r"[0-9]{3,5}\.0*|[0-9]\.[0-9]{1,4}[eE]\+?0?4|[0-9]{1,2},[0-9]{3}")
COORDINATES = re.compile(r"(?:-?[0-9]{1,3}\.[0-9]*[1-9][0-9]*[ ,;]*){1,2}")
PARTIAL_ZIP = re.compile(r"[0-9]{1,4}[xX*%_?]+|[0-9]{1,2}")
_FIRST_ZIP = "00501"
_AROUND_COUNTY = re.compile(r"^0500000US|^US|[\"'\s-]|\.0*$")
_LISTED = re.compile(r"(?:[\s,;|/&+]|\band\b|\bor\b)+")
# Ways to write a day or a month, each with the groups of year, month and day: two readings if both are possible.
_DAYS = (
    (re.compile(r"([0-9]{4})[-/.]([0-9]{1,2})[-/.]([0-9]{1,2})(?:[T ].*)?"), ((0, 1, 2),)),
    (re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})(?:[T ].*)?"), ((0, 1, 2),)),
    (re.compile(r"([0-9]{1,2})[-/.]([0-9]{1,2})[-/.]([0-9]{4})"), ((2, 0, 1), (2, 1, 0))),
    (re.compile(r"([0-9]{4})[-/.]?([0-9]{1,2})"), ((0, 1),)),
)


def unset_in(name: str, text: str) -> str | None:
    """Returns the error for a text that stands for no value, such as a variable that is not set; None for any other."""
    if text and _UNSET.fullmatch(text[:LONGEST]) is None:
        return None
    says = f"says {echoed(text)}" if text else "is empty"
    return f"{echoed(name)} {says}: your program probably did not fill in a variable."


def zips_in(text: str) -> list[str]:
    """Returns the first ZIP codes of a list, or the one in a text that is no list."""
    found = [_QUOTED_ZIP.fullmatch(part) for part in _LISTED.split(text[: 7 * _MOST_LISTED].strip("[](){} ")) if part]
    several = [one[1].zfill(5) for one in found if one is not None] if all(found) else []
    if len(several) > 1 and not _PLUS_FOUR.fullmatch(text):
        return several[:_MOST_LISTED]
    return [zip_code] if (zip_code := zip_in(text)) is not None else []


def county_in(text: str) -> str | None:
    """Returns the five digits of a county's code in `text`, if any."""
    bare = _AROUND_COUNTY.sub("", text[:LONGEST])
    return bare.zfill(5) if bare.isascii() and bare.isdigit() and len(bare) in (4, 5) else None


def city_in(text: str) -> tuple[str, str] | None:
    """Returns the city and state code that `text` ends with. For an address, only if a comma precedes the city."""
    text = text[: 2 * LONGEST]
    split = split_state(text)
    if split is None or not any(map(str.isdigit, split[0])):
        return split
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if len(parts) > 1 and state_of(parts[-1]) is not None:
        parts.pop()
        found = (parts[-1], split[1])
    else:
        found = split_state(parts[-1]) or (parts[-1], split[1])
    return found if len(parts) > 1 and not any(map(str.isdigit, found[0])) else None


def zip_in(text: str) -> str | None:
    """Returns the ZIP code in `text`, if any: without its leading zeros, as a number, in quotes, after a state."""
    if PARTIAL_ZIP.fullmatch(text) or COORDINATES.fullmatch(text):
        return None
    bare = visible(unquote(text[: 2 * LONGEST])).strip().strip("\"'`“”‘’[](){}#;,.* ")
    bare = re.sub(r"^(zip ?code|zip|[A-Za-z]{2})[\s:=-]+(?=[0-9OoIl])", "", bare, flags=re.IGNORECASE)
    if bare.isdecimal():  # perhaps other scripts' digits
        bare = str(int(bare)).zfill(len(bare))
    if _NUMBER.fullmatch(bare):
        bare = str(round(float(bare.replace(",", ""))))
    address = _ADDRESS.fullmatch(bare)
    if address is not None:
        return address[1] or address[2]
    parts = [part for part in re.split(r"[\s\u2010-\u2015\u2212_.+/-]+", bare) if part]
    if len(parts) == 2 and len(parts[0]) in (4, 5) and all(map(str.isdecimal, parts)) and len(parts[1]) <= 4:
        return parts[0].zfill(5)
    joined = "".join(parts).translate(_PADDED) if any(map(str.isdigit, bare)) else ""
    if not joined.isdecimal() or (len(parts) > 1 and len(joined) != 5):
        return None
    joined = joined.lstrip("0") if len(joined) in (6, 7) else joined
    found = joined.zfill(5) if len(joined) <= 5 else joined.zfill(9)[:5] if len(joined) in (8, 9) else ""
    return found if found >= _FIRST_ZIP else None


def suggest_day(name: str, text: str) -> str:
    """Returns how to correct an invalid day; `name` is its parameter.

    For a month, that is the first day, or the last where a period ends. If day and month are ambiguous, both readings
    are named.
    """
    at_end = name == "to" or name.endswith("_to")
    days: dict[str, None] = {}
    for pattern, orders in _DAYS:
        found = pattern.fullmatch(text.strip())
        for order in orders if found is not None else ():
            with suppress(ValueError):
                year, month, *day = (int(found.groups()[at]) for at in order)  # type: ignore[union-attr]
                days[str(date(year, month, *(day or [monthrange(year, month)[1] if at_end else 1])))] = None
    return f"Did you mean {' or '.join(days)}?" if days else "Give one like 2026-11-01."


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
