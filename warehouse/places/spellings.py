"""Other ways to write a city's name: followed by its state, after ``City of``, abbreviated.

Abbreviations: USPS Publication 28, sections 233 (directions) and Appendix C1 (words that occur in names of cities).
"""

import re
from collections.abc import Iterator

from warehouse.places.names import STATE_NAMES, fold_city, state_of

_SEPARATORS = re.compile(r"[\s.,+_/-]+")
# Words that the Census Bureau appends to names, and municipalities prepend.
_KINDS = ("city", "town", "village", "borough", "township", "municipality", "cdp", "metro", "metropolitan")
_COUNTRIES = ("usa", "us")
_DIRECTIONS = {
    "n": "north", "no": "north", "s": "south", "so": "south", "e": "east", "w": "west",
    "ne": "northeast", "nw": "northwest", "se": "southeast", "sw": "southwest",
}  # fmt: skip
_WORDS = {
    "bch": "beach", "brk": "brook", "ctr": "center", "cntr": "center", "crk": "creek", "cv": "cove", "cyn": "canyon",
    "fls": "falls", "fld": "field", "frst": "forest", "gdns": "gardens", "grv": "grove", "hbr": "harbor", "hl": "hill",
    "hls": "hills", "hts": "heights", "hgts": "heights", "is": "island", "isl": "island", "jct": "junction",
    "lk": "lake", "lks": "lakes", "lndg": "landing", "mdws": "meadows", "mtn": "mountain", "natl": "national",
    "pk": "park", "pln": "plain", "plns": "plains", "pr": "prairie", "prt": "port", "pt": "point", "rdg": "ridge",
    "riv": "river", "rvr": "river", "sq": "square", "spg": "spring", "spgs": "springs",
    "sta": "station", "twp": "township", "vlg": "village", "vly": "valley", "cty": "city",
    "jb": "joint base", "afb": "air force base", "ft": "fort", "co": "colorado", "gr": "grand", "grt": "great",
}  # fmt: skip
_ARTICLES = ("el", "la", "las", "los", "the")
# Some names have the short form themselves (S Coffeyville, OK).
_SHORT = {"north": "n", "south": "s", "east": "e", "west": "w"}


def other_forms(name: str, state_code: str) -> Iterator[str]:
    """Yields other folded forms of `name` in the state: at most eight, the least changed first."""
    words = [word for word in _SEPARATORS.split(name.casefold()) if word]
    seen = {fold_city(name)}
    for bare in _without_kind(_without_state(words, state_code)):
        for written in (bare, _long(bare), _short(bare)):
            folded = fold_city("".join(written))
            if folded and folded not in seen:
                seen.add(folded)
                yield folded


def split_state(name: str) -> tuple[str, str] | None:
    """Returns city and state code if `name` is a city followed by a state, with or without a comma."""
    words = [word for word in _SEPARATORS.split(name) if word]
    while len(words) > 1 and words[-1].casefold() in _COUNTRIES:
        words.pop()
    for length in (1, 2, 3):
        if len(words) > length:
            tail = " ".join(words[-length:])
            code = state_of(tail) if not tail.isdigit() else None
            if code is not None:
                return " ".join(words[:-length]), code
    return None


def abbreviates(name: str, city: str) -> bool:
    """Returns whether `name` abbreviates `city`: by its initials, or by its words, in order, with letters left out."""
    short, full = ([word for word in _SEPARATORS.split(text.casefold()) if word] for text in (name, city))
    if len(full) > 1 and full[0] in _ARTICLES and short[:1] != full[:1]:
        full = full[1:]
    if len(short) == 1 and len(full) > 1:
        return short[0] == "".join(word[0] for word in full)
    return len(short) == len(full) and all(map(_is_short, short, full)) and fold_city(name) != fold_city(city)


def _is_short(word: str, full: str) -> bool:
    """Returns whether `word` has the first letter of `full`, and only letters of `full` in their order."""
    letters = iter(full)
    return word[:1] == full[:1] and all(letter in letters for letter in word)


def plain_name(name: str, *, cities: bool = False) -> str:
    """Returns `name`, folded, without the kind of municipality, for hints.

    `cities`: also without City and Town, which are parts of many names.
    """
    words = [word for word in _SEPARATORS.split(name.casefold()) if word]
    if len(words) > 2 and words[0] in _KINDS and words[1] == "of":
        words = words[2:]
    while len(words) > 1 and words[-1] in (_KINDS if cities else _KINDS[2:]):
        words.pop()
    return fold_city("".join(words))


def _without_state(words: list[str], state_code: str) -> list[str]:
    while len(words) > 1 and words[-1] in _COUNTRIES:
        words = words[:-1]
    if len(words) > 1 and words[-1] == state_code.casefold():
        return words[:-1]
    if len(words) > 2 and "".join(words[-2:]) == state_code.casefold():  # D.C.
        return words[:-2]
    for name in STATE_NAMES.get(state_code, ()):
        tail = name.casefold().split()
        rest = words[: -len(tail)]
        if rest and words[-len(tail) :] == tail and rest != ["city", "of"]:  # City of New York
            return rest
    return words


def _without_kind(words: list[str]) -> Iterator[list[str]]:
    yield words
    if len(words) > 1 and words[0] == "the":
        yield words[1:]
        words = words[1:]
    # a town may be another place than the city of its name, as in Tonawanda, NY
    if len(words) > 2 and words[:2] == ["city", "of"]:
        yield words[2:]


def _long(words: list[str]) -> list[str]:
    ends = (0, len(words) - 1)
    return [
        _DIRECTIONS.get(word) or _WORDS.get(word, word) if at in ends else _WORDS.get(word, word)
        for at, word in enumerate(words)
    ]


def _short(words: list[str]) -> list[str]:
    return [_SHORT.get(word, word) if at == 0 else word for at, word in enumerate(words)]
