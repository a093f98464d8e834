"""Parameters of these endpoints: unknown ones are errors (contract 5)."""

from collections.abc import Sequence
from difflib import get_close_matches

from service.http.errors import ApiError
from service.http.query import read_parameters

_SIMILARITY = 0.6


def read_strictly(query: bytes, known: Sequence[str]) -> dict[str, str]:
    """Values by name. Raises ApiError (400), also for a parameter that is not known here."""
    values, unknown = read_parameters(query, known)
    if unknown:
        name = unknown[0][:50]
        shown = "".join(character for character in name if character.isprintable())
        close = get_close_matches(name.lower(), known, n=1, cutoff=_SIMILARITY)
        advice = f"Did you mean {close[0]}?" if close else _known(known)
        raise ApiError("unknown_parameter", f"There is no parameter {shown} here. {advice}", shown)
    return values


def _known(names: Sequence[str]) -> str:
    return f"There are {', '.join(names)}." if names else "This path takes none."
