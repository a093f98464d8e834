"""What one server and a cluster have in common: commands on single names, pipelined."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from service.redis.client import RedisStore


class NameCommand(NamedTuple):
    """A command on one name, which says where it goes."""

    name: str
    words: tuple[str | int | bytes, ...]


class NameStore(Protocol):
    """A Redis that keeps names: a RedisStore, or a ClusterStore. Whoever opens one stops it."""

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

    async def pipelined(self, commands: Sequence[NameCommand]) -> list[Any]:
        """The reply to each command, or the error that it was answered with: StoreUnavailable if its server is away.

        Raises:
            StoreUnavailable: if that holds for all of them.
        """

    async def unlink(self, names: Sequence[bytes]) -> int:
        """Removes `names`. Returns how many there were. Raises StoreUnavailable if not all could be asked for."""


def named_command(command: str, name: bytes, *before: str) -> NameCommand:
    """A command on a name that was found: `before` comes between the two."""
    return NameCommand(name.decode("utf-8", "surrogateescape"), (command, *before, name))
