"""Reads what a text was probably meant to be: a ZIP code, a place, a county's code, a day, or no value at all.

No function reads data. A value may be as long as the address, so only its beginning is read, and a long one costs no
more than a short one.
"""

import re
from calendar import monthrange
from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from urllib.parse import unquote

from config.text import visible
from service.request.parameters import LONGEST
from warehouse.places.names import state_of
from warehouse.places.spellings import split_state

_MOST_LISTED = 100  # ZIP codes
# Texts that programs send for a variable without a value, or that stand where a value has to be filled in.
_UNSET = re.compile(
    r"undefined|null|none|nan|nat|nil|na|n/?a|void|true|false|test|string|example|foo|x{3,}|your[ _-]?.*"
    r"|empty|blank|missing|tbd|not (?:available|set|found|known)|[-_.\"']+"
    r"|\((?:null|none)\)|\[object object\]|#(?:n/a|ref!|value!|name\?|null!)|\$?\{.*\}|<.*>|\$\(?[\w.]+\)?"
    r"|%\(?\w*\)?[%sd]"
    r"|[:@][a-z_]\w*|\[[a-z_ -]+\]|(?:zip|postal|city|state|county)(?:[ _-]?(?:code|name|fips|fips[ _-]code))?",
    re.IGNORECASE,
)
_PADDED = "".maketrans("OoIlL", "00111")
_DIGITS = re.compile(r"[0-9]+")
_QUOTED_ZIP = re.compile(r"[\"']?([0-9]{4,5})[\"']?")
_PLUS_FOUR = re.compile(r"[0-9]{5}.[0-9]{4}")
# A ZIP code after or before its city or address.
_ADDRESS = re.compile(
    r".*[A-Za-z].*?(?<![0-9])([0-9]{5})(?:-[0-9]{4})?|([0-9]{5})(?:-[0-9]{4})?[,\s]+[A-Za-z .,]+", re.DOTALL
)
_FIRST_ZIP = "00501"
_AROUND_COUNTY = re.compile(r"^0500000US|^US|[\"'\s-]|\.0*$")
_LISTED = re.compile(r"(?:[\s,;|/&+]|\band\b|\bor\b)+")
_YEAR_FIRST = re.compile(r"([0-9]{4})[-/.]([0-9]{1,2})[-/.]([0-9]{1,2})(?:[T ].*)?")
_DIGITS_OF_A_DAY = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})(?:[T ].*)?")
_MONTH = re.compile(r"([0-9]{4})[-/.]?([0-9]{1,2})")
_YEAR_LAST = re.compile(r"([0-9]{1,2})[-/.]([0-9]{1,2})[-/.]([0-9]{4})")


def is_unset(text: str) -> bool:
    """Returns whether a program has probably sent the text for a variable without a value, or left a placeholder."""
    return _UNSET.fullmatch(text.strip()[:LONGEST]) is not None


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
    bare = visible(unquote(text[: 2 * LONGEST])).strip().strip("\"'`“”‘’[](){}#;,.* ")
    bare = re.sub(r"^(zip ?code|zip|[A-Za-z]{2})[\s:=-]+(?=[0-9OoIl])", "", bare, flags=re.IGNORECASE)
    if bare.isdecimal() and not bare.isascii():  # other scripts' digits
        bare = "".join(str(int(digit)) for digit in bare)
    if re.fullmatch(r"[0-9]{3,5}\.0*", bare):
        bare = bare.partition(".")[0]
    if re.fullmatch(r"[0-9]\.[0-9]{1,4}[eE]\+?0?4", bare):
        bare = str(round(float(bare)))
    if re.fullmatch(r"[0-9]{1,2},[0-9]{3}", bare):
        bare = bare.replace(",", "")
    address = _ADDRESS.fullmatch(bare)
    if address is not None:
        return address[1] or address[2]
    parts = [part for part in re.split(r"[\s\u2010-\u2015\u2212_.+/-]+", bare) if part]
    if len(parts) == 2 and len(parts[0]) in (4, 5) and all(map(_DIGITS.fullmatch, parts)) and len(parts[1]) <= 4:
        return parts[0].zfill(5)
    if len(parts) > 1 and len("".join(parts)) != 5:
        return None
    joined = "".join(parts).translate(_PADDED) if any(map(str.isdigit, bare)) else ""
    if not _DIGITS.fullmatch(joined):
        return None
    if len(joined) in (6, 7):
        joined = joined.removeprefix("0").removeprefix("0")
    found = joined.zfill(5) if len(joined) <= 5 else joined.zfill(9)[:5] if len(joined) in (8, 9) else ""
    return found if found >= _FIRST_ZIP else None


def suggest_day(name: str, text: str) -> str:
    """Returns how to correct an invalid day; `name` is its parameter.

    For a month, that is the first day, or the last where a period ends. If day and month are ambiguous, both readings
    are named.
    """
    days = _days_in(text.strip(), at_end=name == "to" or name.endswith("_to"))
    return f"Did you mean {' or '.join(days)}?" if days else "Give one like 2026-11-01."


def _days_in(text: str, *, at_end: bool) -> list[str]:
    for pattern in (_YEAR_FIRST, _DIGITS_OF_A_DAY):
        whole = pattern.fullmatch(text)
        if whole is not None:
            return _existing(whole.groups())
    month = _MONTH.fullmatch(text)
    if month is not None and 1 <= int(month[2]) <= 12:
        last = monthrange(int(month[1]), int(month[2]))[1] if int(month[1]) else 1
        return _existing((*month.groups(), str(last if at_end else 1)))
    turned = _YEAR_LAST.fullmatch(text)
    if turned is None:
        return []
    first, second, year = turned.groups()
    found = [*_existing((year, first, second)), *_existing((year, second, first))]
    return list(dict.fromkeys(found))


def _existing(parts: Sequence[str]) -> list[str]:
    with suppress(ValueError):
        return [str(date(*map(int, parts)))]
    return []
