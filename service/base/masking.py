"""Masks keys in text that is shown or logged: one may have been pasted by mistake.

A key is masked in any letter case, percent-encoded or escaped several times, and with invisible characters in it. The
pattern is unambiguous, so that it takes time in proportion to the length of the text.
"""

import re
from functools import cache
from unicodedata import normalize

from config.text import printable

# Keys begin with one of these.
LIVE_PREFIX, TEST_PREFIX = "phf_live", "phf_test"
_HEX = "[0-9A-Fa-f]"
# Characters of a name that are checked.
_LONGEST_NAME = 50
# Characters of a text that is stored: a label, a reason.
_LONGEST_TEXT = 200
# Names that people give to parameters and headers that carry a key.
_KEY_NAMES = ("apikey", "xapikey", "key", "token", "accesstoken", "authorization", "auth", "appid", "secret",
         "subscriptionkey")  # fmt: skip
# A percent sign may be encoded several times, so may the signs of other escapes, and a backslash be escaped.
_PERCENT = "%(?:25){0,8}"
_BACKSLASH = rf"(?:\\|{_PERCENT}5[Cc]){{1,8}}"
_AMPERSAND, _NUMBER, _END = (f"(?:{sign}|{_PERCENT}(?i:{ord(sign):x}))" for sign in "&#;")
# Characters that may stand between those of a key: non-ASCII ones, escaped or not.
_BETWEEN = (
    rf"(?:[^\x00-\x7f]|{_PERCENT}[89A-Fa-f]{_HEX}|{_BACKSLASH}u(?!00[0-7]){_HEX}{{4}}|"
    rf"{_AMPERSAND}(?:{_NUMBER}(?:12[89]|1[3-9]\d|[2-9]\d\d|\d{{4,5}})|[a-z]{{1,8}}){_END})*"
)
_PART = (
    rf"(?:[0-9A-Za-z_]|{_BACKSLASH}(?:u00|x)[3-7]{_HEX}|{_PERCENT}[3-7]{_HEX}|"
    rf"{_AMPERSAND}{_NUMBER}(?:[4-9]\d|1[01]\d|12[0-7]){_END})"
)


def _written(text: str) -> str:
    """Returns the pattern of all ways to write `text`, which is in lower case."""
    ways = []
    for character in text:
        codes = {ord(character), ord(character.upper())}
        escaped = rf"(?:{_PERCENT}|{_BACKSLASH}(?:u00|x))(?i:{'|'.join(f'{code:x}' for code in codes)})"
        entity = rf"{_AMPERSAND}{_NUMBER}(?:{'|'.join(map(str, codes))}){_END}"
        ways.append(f"(?:(?i:{character})|{escaped}|{entity})")
    return _BETWEEN.join(ways)


@cache
def _like_one() -> re.Pattern[str]:
    # compiled when it is needed, which takes 30 ms
    return re.compile(
        # the first looks ahead, so that other escapes cost little
        rf"(?=[pP\\&]|{_PERCENT}(?:[57]0|5[Cc]|26)){_written('phf_')}{_BETWEEN}"
        rf"(?:{_written('live')}|({_written('test')})){_BETWEEN}{_written('_')}(?:{_BETWEEN}{_PART})+"
    )


def masked(text: str) -> str:
    """Returns `text` without anything that looks like a key or a part of one."""
    # most text has no key, which these checks show much sooner
    escaped = "%" in text or "\\" in text or ("&" in text and ";" in text)
    return _like_one().sub(_mask, text) if escaped or not text.isascii() or "phf" in text.casefold() else text


def has_key(text: str) -> bool:
    """Returns whether anything in `text` looks like a key."""
    return masked(text) != text


def storable(name: str, text: str) -> str:
    """Returns a text without spaces around it, as it can be stored for good, and shown.

    Raises ValueError, which calls it `name`.
    """
    # invisible characters, other forms of a letter, and replaced bytes make names that look the same
    text = normalize("NFC", text)
    if len(text) > _LONGEST_TEXT or printable(text) != text or "\ufffd" in text:
        raise ValueError(f"{name} must be printable and at most {_LONGEST_TEXT} characters")
    if has_key(text):
        raise ValueError(f"{name} contains what looks like a key; if it is one, revoke it")
    return text.strip()


def is_key_name(name: str) -> bool:
    """Returns whether a parameter or header of that name is one for an API key."""
    return "".join(filter(str.isalnum, name[:_LONGEST_NAME].casefold())) in _KEY_NAMES


def _mask(found: "re.Match[str]") -> str:
    return f"{LIVE_PREFIX if found[1] is None else TEST_PREFIX}_********"
