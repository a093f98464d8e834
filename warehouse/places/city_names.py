"""City names as people write them, folded to one spelling for look-ups."""

import unicodedata

# Not letters, but written inside city names one time and left out the next; dashes, spaces, accents and invisible
# characters go by category.
_DROPPED = frozenset("'’‘ʻʼ`´.")
_DROPPED_CATEGORIES = frozenset({"Pd", "Zs", "Mn", "Cf"})
# The long form becomes the short one after spaces are gone, so that "StLouis", "St. Louis" and "Saint Louis" meet.
_SHORT_FORMS = (("saint", "st"), ("fort", "ft"), ("mount", "mt"))


def fold_city(name: str) -> str:
    """`name` without case, spaces, accents, apostrophes, periods and hyphens; Saint, Fort and Mount abbreviated."""
    folded = "".join(
        character
        for character in unicodedata.normalize("NFKD", name)
        if character not in _DROPPED and unicodedata.category(character) not in _DROPPED_CATEGORIES
    ).casefold()
    for long, short in _SHORT_FORMS:
        folded = folded.replace(long, short)
    return folded


def strip_state(name: str, state_code: str) -> str:
    """`name` without a trailing ``, ST`` that repeats `state_code`, because answers print cities so."""
    head, comma, tail = name.rpartition(",")
    return head.strip() if comma and tail.strip().upper() == state_code else name
