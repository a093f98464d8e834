"""A verdict on a key as an error of contract 10."""

from typing import assert_never

from service.keys.verdict import Rejected, Unknown


def refusal_of_key(verdict: Rejected | Unknown) -> tuple[str, str, str | None]:
    """(code of the error, outcome that is counted, id of the key if its owner proved to have it)."""
    match verdict:
        case Rejected(reason, key_id, _):
            return f"{reason}_api_key", reason, key_id
        case Unknown():
            return "unavailable", "unknown", None
        case _:
            assert_never(verdict)
