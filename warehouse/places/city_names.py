"""Folds the spellings of a city name to one form for look-ups."""

import unicodedata

# Characters that only some spellings of a name have. Dashes, spaces, accents and invisible characters are dropped by
# their category.
_DROPPED = frozenset("'’‘ʻʼ`´.")
_DROPPED_CATEGORIES = frozenset({"Pd", "Zs", "Mn", "Cf"})
# Applied after spaces are dropped, so that "StLouis", "St. Louis" and "Saint Louis" become the same.
_SHORT_FORMS = (("saint", "st"), ("fort", "ft"), ("mount", "mt"))


def fold_city(name: str) -> str:
    """Returns `name` in lower case, without spaces, accents, apostrophes, periods and hyphens.

    Saint, Fort and Mount are abbreviated.
    """
    folded = "".join(
        character
        for character in unicodedata.normalize("NFKD", name)
        if character not in _DROPPED and unicodedata.category(character) not in _DROPPED_CATEGORIES
    ).casefold()
    for long, short in _SHORT_FORMS:
        folded = folded.replace(long, short)
    return folded


def strip_state(name: str, state_code: str) -> str:
    """Returns `name` without a trailing ``, ST`` that repeats `state_code`. People copy it from answers."""
    head, comma, tail = name.rpartition(",")
    return head.strip() if comma and tail.strip().upper() == state_code else name
