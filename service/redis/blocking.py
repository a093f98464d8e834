"""Stores for commands, which wait for each reply: one server, or a cluster."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from config.first_line import first_line
from config.server_lists import Node, ServerList, server_list
from service.redis.client import open_blocking_client
from service.redis.cluster.routing import Leg, Routing
from service.redis.cluster.slots import Redirect, SlotMap, slot_map
from service.redis.errors import StoreUnavailable
from service.redis.name_store import NameCommand, named_command
from service.redis.sentinels import open_blocking


class BlockingStore(Protocol):
    """Where one command of the program stores and removes names."""

    @property
    def servers(self) -> Sequence[Redis]:
        """Those that have names."""

    def pipelined(self, commands: Sequence[NameCommand]) -> list[Any]:
        """The reply to each command, or the error that it was answered with: StoreUnavailable if a node is away.

        Raises:
            RedisError, OSError: if nothing is there to ask.
        """

    def unlink(self, names: Sequence[bytes]) -> int:
        """Removes `names`. Returns how many there were. Raises RedisError or OSError if not all could be asked for."""


class _Server:
    def __init__(self, client: Redis) -> None:
        self.servers = (client,)

    def pipelined(self, commands: Sequence[NameCommand]) -> list[Any]:
        return _pipelined(self.servers[0], commands)

    def unlink(self, names: Sequence[bytes]) -> int:
        return self.servers[0].unlink(*names)


class _Cluster:
    """A node that failed is not asked again: what belongs there is not worth waiting for once more."""

    def __init__(self, listed: ServerList, timeout: float) -> None:
        self._listed = listed
        self._timeout = timeout
        self._clients: dict[Node, Redis] = {}
        self._gone: dict[Node, StoreUnavailable] = {}
        found = self._ask()
        self._owners = list(found.owners)
        self.servers = [self._client(node) for node in found.primaries]

    def pipelined(self, commands: Sequence[NameCommand]) -> list[Any]:
        routing = Routing(commands, self._owners.__getitem__, self._sent_to)
        more = True
        while more:
            for node, legs in routing.legs():
                self._run(routing, node, legs)
            more = routing.next_round()
        try:
            return routing.replies()
        except StoreUnavailable as error:
            raise RedisConnectionError(str(error)) from None

    def unlink(self, names: Sequence[bytes]) -> int:
        gone = 0
        for reply in self.pipelined([named_command("UNLINK", name) for name in names]):
            if isinstance(reply, StoreUnavailable):
                raise RedisConnectionError(str(reply))
            if isinstance(reply, Exception):
                raise reply
            gone += reply
        return gone

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def _run(self, routing: Routing[Node], node: Node, legs: list[Leg]) -> None:
        if node in self._gone:
            routing.fail(legs, self._gone[node])
            return
        try:
            replies = _pipelined(self._client(node), [NameCommand("", words) for words in routing.words(legs)])
        except (RedisError, OSError) as error:
            self._gone[node] = StoreUnavailable(f"{node}: {first_line(error)}")
            routing.fail(legs, self._gone[node])
        else:
            routing.take(legs, replies, node)

    def _sent_to(self, slot: int, there: Redirect) -> Node:
        if not there.asking:
            self._owners[slot] = there.to
        return there.to

    def _client(self, node: Node) -> Redis:
        if node not in self._clients:
            self._clients[node] = open_blocking_client(self._listed.server_url(node), self._timeout)
        return self._clients[node]

    def _ask(self) -> SlotMap:
        """Who has which slot, as the first node says that knows."""
        why: Exception = RedisConnectionError("no node says who has which slot")
        for node in self._listed.nodes:
            try:
                found = slot_map(self._client(node).execute_command("CLUSTER", "SLOTS"), node)  # type: ignore[no-untyped-call]
            except (RedisError, OSError, ValueError) as error:
                why = error
            else:
                if found.primaries:
                    return found
        self.close()
        raise RedisConnectionError(f"no node says who has which slot: {first_line(why)}")


@contextmanager
def open_blocking_store(url: str, timeout: float) -> Iterator[BlockingStore]:
    """The store at a valid `url`, for one piece of work. Each reply takes at most `timeout` seconds.

    Raises:
        RedisError, StoreUnavailable: if no node of a cluster says who has which slot, or no majority of Sentinels names
            a primary.
    """
    listed = server_list(url)
    if listed is not None and listed.kind == "cluster":
        cluster = _Cluster(listed, timeout)
        try:
            yield cluster
        finally:
            cluster.close()
    else:
        with open_blocking(url, timeout) as client:
            yield _Server(client)


def _pipelined(client: Redis, commands: Sequence[NameCommand]) -> list[Any]:
    with client.pipeline(transaction=False) as pipeline:
        for command in commands:
            pipeline.execute_command(*command.words)  # type: ignore[no-untyped-call]
        return pipeline.execute(raise_on_error=False)
