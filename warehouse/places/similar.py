"""Finds names similar to a misspelt one.

RapidFuzz costs a worker 40 ms at its start and 6 MB. In plain Python, searching the names of a state would block the
event loop for tens of milliseconds.
"""

from collections.abc import Iterable, Sequence
from itertools import islice

from rapidfuzz import process
from rapidfuzz.distance import OSA

# Long enough that few cities share a beginning by chance.
_SHORTEST_BEGINNING = 3


def nearest(text: str, names: Iterable[str], typos: int) -> str | None:
    """Returns the name that differs from `text` in the fewest letters, at most `typos`; None if none does."""
    found = process.extractOne(text, list(names), scorer=OSA.distance, score_cutoff=typos)
    return found[0] if found is not None else None


def similar_names(typed: str, names: Sequence[str], most: int) -> list[str]:
    """Returns at most `most` of `names`, the nearest first: few letters differ, or one begins with the other.

    All are folded. Compares every name once: 0.3 ms for the state with the most names, for any `typed`.
    """
    found = process.extract(typed, names, scorer=OSA.distance, score_cutoff=_typos(typed), limit=most)
    alike = [name for name, _, _ in found]
    if len(alike) < most and len(typed) >= _SHORTEST_BEGINNING:
        longer = (name for name in names if name.startswith(typed) and name not in alike)
        alike += islice(longer, most - len(alike))
    if len(alike) < most:
        shorter = [name for name in names if len(name) > _SHORTEST_BEGINNING and typed.startswith(name)]
        alike += [name for name in sorted(shorter, key=len, reverse=True) if name not in alike][: most - len(alike)]
    return alike


def _typos(typed: str) -> int:
    return 1 if len(typed) <= 4 else 2 if len(typed) <= 9 else 3
