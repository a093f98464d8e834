"""What a check says of a request: an error, that it may go on, or that something has to be asked first."""

from collections.abc import Awaitable, Callable

import msgspec

from service.http.reply import Reply


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
