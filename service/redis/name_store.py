"""The common interface of one server and a cluster: pipelined commands on single names."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from service.redis.errors import StoreRefused, StoreUnavailable
from service.redis.pipelined import Call, Read, Words, anything

if TYPE_CHECKING:
    from service.redis.client import RedisStore

T = TypeVar("T")


class NameCommand(NamedTuple):
    """A command on one name, which decides where it is sent."""

    name: str
    words: Words


class NameStore(Protocol):
    """The common interface of a RedisStore and a ClusterStore. The opener stops it."""

    name: str

    @property
    def healthy(self) -> bool:
        """Whether every name is reachable."""

    @property
    def is_unreachable(self) -> bool:
        """Whether no name is reachable, so that no call is made."""

    @property
    def servers(self) -> "Sequence[RedisStore]":
        """Servers that hold names."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    def server_of(self, name: str) -> str:
        """Returns what the server of `name` is called."""

    def one_for_each_server(self, name: str) -> Sequence[str]:
        """Returns names that begin with `name`, one for each server."""

    def send(
        self, name: str, words: Words, read: Read[T], learn: Callable[[Call], None] | None = None
    ) -> asyncio.Future[T]:
        """Sends a command about `name`, with the others of this turn; returns a future of its parsed reply.

        A cancelled caller does not cancel the command. Needs a running loop. The future raises StoreRefused for an
        error reply, StoreUnavailable if there is none.
        """

    async def pipelined(self, commands: Sequence[NameCommand]) -> list[Any]:
        """Returns the reply to each command, or the exception that `send` would raise.

        Raises:
            StoreUnavailable: if no server replied.
        """

    async def unlink(self, names: Sequence[bytes]) -> int:
        """Removes `names`. Returns how many there were. Raises StoreUnavailable if a server did not reply."""


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


async def call_one(store: NameStore, command: NameCommand) -> Any:
    """Returns the reply to one command. Raises StoreUnavailable, also for an error reply."""
    return await store.send(command.name, command.words, anything)
