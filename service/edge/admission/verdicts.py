"""A verdict on a key as an error of contract 10."""

from collections.abc import Awaitable, Callable
from typing import assert_never

import msgspec

from service.http.reply import Reply
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


class Ask(msgspec.Struct, frozen=True):
    """Wait for `answer`, which puts what was missing into the request's head; then decide again."""

    answer: Callable[[], Awaitable[None]]


# The error that the request ends with; None: it may go on.
Ruling = Reply | Ask | None


async def ruled(decide: Callable[[], Ruling]) -> Reply | None:
    """What `decide` says in the end."""
    while isinstance(ruling := decide(), Ask):
        await ruling.answer()
    return ruling
