"""What one server and a cluster have in common: commands on single names, pipelined."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from service.redis.errors import StoreRefused, StoreUnavailable
from service.redis.pipelined import Call, Read, Words, anything

if TYPE_CHECKING:
    from service.redis.client import RedisStore

T = TypeVar("T")


class NameCommand(NamedTuple):
    """A command on one name, which says where it goes."""

    name: str
    words: Words


class NameStore(Protocol):
    """The common interface of a RedisStore and a ClusterStore. The opener stops it."""

    name: str

    @property
    def healthy(self) -> bool:
        """Every name can be asked for."""

    @property
    def is_away(self) -> bool:
        """No name can be asked for, so that no call is made."""

    @property
    def servers(self) -> "Sequence[RedisStore]":
        """Those that have names."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    def server_of(self, name: str) -> str:
        """What the server of `name` is called."""

    def one_for_each_server(self, name: str) -> Sequence[str]:
        """Names that begin with `name`, one for each server."""

    def send(
        self, name: str, words: Words, read: Read[T], learn: Callable[[Call], None] | None = None
    ) -> asyncio.Future[T]:
        """Sends a command about `name`, with the others of this turn; returns what will be made of its reply.

        A caller that goes away does not cancel the command. Needs a running loop. The future raises StoreRefused if the
        server answers with an error, StoreUnavailable if it does not answer.
        """

    async def pipelined(self, commands: Sequence[NameCommand]) -> list[Any]:
        """The reply to each command, or what `send` would raise.

        Raises:
            StoreUnavailable: if no server answered.
        """

    async def unlink(self, names: Sequence[bytes]) -> int:
        """Removes `names`. Returns how many there were. Raises StoreUnavailable if not all could be asked for."""


async def gathered(answers: Iterable[asyncio.Future[T]]) -> list[T | StoreUnavailable]:
    """The result of each, or why there is none. Raises StoreUnavailable if no server answered any."""
    results: list[Any] = await asyncio.gather(*answers, return_exceptions=True)
    silent = [one for one in results if isinstance(one, StoreUnavailable) and not isinstance(one, StoreRefused)]
    if silent and len(silent) == len(results):
        raise silent[0]
    for one in results:
        if isinstance(one, BaseException) and not isinstance(one, StoreUnavailable):
            raise one  # a defect
    return results


def checked(result: T | StoreUnavailable) -> T:
    """One of the results of `gathered`. Raises StoreUnavailable if there is none."""
    if isinstance(result, StoreUnavailable):
        raise result
    return result


def named_command(command: str, name: bytes, *before: str) -> NameCommand:
    """A command on a name that was found: `before` comes between the two."""
    return NameCommand(name.decode("utf-8", "surrogateescape"), (command, *before, name))


async def ask_one(store: NameStore, command: NameCommand) -> Any:
    """The reply to one command. Raises StoreUnavailable, also if it is answered with an error."""
    return await store.send(command.name, command.words, anything)
