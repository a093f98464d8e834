"""Commands on single names, which one server and a cluster take alike, and their results."""

import asyncio
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

from service.redis.errors import StoreRefused, StoreUnavailable
from service.redis.pipelined import Words

T = TypeVar("T")


class NameCommand(NamedTuple):
    """A command on one name, which decides where it is sent."""

    name: str
    words: Words


async def gathered(answers: Iterable[asyncio.Future[T]]) -> list[T | StoreUnavailable]:
    """Returns each result, or why it is missing. Raises StoreUnavailable if no server replied."""
    results: list[Any] = await asyncio.gather(*answers, return_exceptions=True)
    silent = [one for one in results if isinstance(one, StoreUnavailable) and not isinstance(one, StoreRefused)]
    if silent and len(silent) == len(results):
        raise silent[0]
    for one in results:
        if isinstance(one, BaseException) and not isinstance(one, StoreUnavailable):
            raise one  # a defect
    return results


def checked(result: T | StoreUnavailable) -> T:
    """Returns one of the results of `gathered`. Raises StoreUnavailable if there is none."""
    if isinstance(result, StoreUnavailable):
        raise result
    return result


def named_command(command: str, name: bytes, *before: str) -> NameCommand:
    """Returns a command on a name that was found: `before` comes between the two."""
    return NameCommand(name.decode("utf-8", "surrogateescape"), (command, *before, name))
