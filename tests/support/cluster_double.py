"""A cluster in this event loop, which says what a test wants it to: nodes on ports, over doubles of Redis."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import hiredis
from fakeredis import FakeRedis, FakeServer

from config.server_lists import Node, ServerList, server_list
from service.redis.cluster.slots import SLOTS, slot_of
from tests.support.redis_double import encoded, executed

# Where each command has its name.
_NAME_AT = {"EVAL": 3, "EVALSHA": 3, "MEMORY": 2}
_NAMELESS = {"PING", "HELLO", "CLUSTER", "ASKING", "CLIENT", "SCAN", "INFO", "CONFIG", "SCRIPT"}


class NodeDouble:
    """One primary. What it is to do wrong is set from outside."""

    def __init__(self, cluster: "ClusterDouble") -> None:
        self.cluster = cluster
        self.data = FakeRedis(server=FakeServer())
        self.goes = asyncio.Event()  # while it is not set, commands are taken and wait
        self.goes.set()
        self.says: Callable[[list[str]], str | None] = lambda _words: None  # an error, instead of an answer
        self.reads: list[bytes] = []  # what arrived, as it arrived
        self.migrating: dict[int, NodeDouble] = {}
        self.importing: set[int] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.node = Node("127.0.0.1", 0)

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.node.port)
        self.node = Node("127.0.0.1", self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """As if it was killed; it may be started again, with what it had."""
        self.goes.set()
        if self._server is not None:
            self._server.close()
            self._server = None
        self.hang_up()
        await asyncio.sleep(0)

    def hang_up(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    @property
    def connections(self) -> int:
        return len(self._writers)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        commands, asking = hiredis.Reader(), False
        try:
            while data := await reader.read(1 << 16):
                self.reads.append(data)
                await self.goes.wait()
                commands.feed(data)
                while (command := commands.gets()) is not False:
                    words = [word.decode("utf-8", "surrogateescape") for word in command]
                    writer.write(self._reply(words, asking=asking))
                    asking = words == ["ASKING"]
        except ConnectionError:
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    def _reply(self, words: list[str], *, asking: bool) -> bytes:
        wrong = self.says(words) or self._elsewhere(words, asking=asking)
        if wrong is not None:
            return f"-{wrong}\r\n".encode()
        if words == ["CLUSTER", "SLOTS"]:
            return encoded(self.cluster.slots())
        if words[0] == "HELLO":
            return b"-ERR unknown command\r\n"
        if words[0] in {"ASKING", "CLIENT"}:
            return b"+OK\r\n"
        return executed(self.data, [word.encode("utf-8", "surrogateescape") for word in words])

    def _elsewhere(self, words: list[str], *, asking: bool) -> str | None:
        if words[0] in _NAMELESS:
            return None
        name = words[_NAME_AT.get(words[0], 1)]
        slot = slot_of(name)
        owner = self.cluster.owners[slot]
        if owner is self:
            to = self.migrating.get(slot)
            return None if to is None or self.data.exists(name) else f"ASK {slot} {to.node}"
        return None if asking and slot in self.importing else f"MOVED {slot} {owner.node}"


class ClusterDouble:
    """Three primaries with a third of the slots each. `known`, if it is set, is what they say of the slots."""

    def __init__(self) -> None:
        self.nodes = [NodeDouble(self) for _ in range(3)]
        self.owners = [self.nodes[slot * 3 // SLOTS] for slot in range(SLOTS)]
        self.known: list[Any] | None = None

    @property
    def url(self) -> str:
        return f"redis+cluster://{','.join(str(one.node) for one in self.nodes)}"

    @property
    def listed(self) -> ServerList:
        listed = server_list(self.url)
        assert listed is not None
        return listed

    async def start(self) -> "ClusterDouble":
        for one in self.nodes:
            await one.start()
        return self

    async def stop(self) -> None:
        for one in self.nodes:
            await one.stop()

    def slots(self) -> list[Any]:
        """As CLUSTER SLOTS says it."""
        if self.known is not None:
            return self.known
        ranges: list[Any] = []
        for slot, owner in enumerate(self.owners):
            if ranges and ranges[-1][2] is owner:
                ranges[-1][1] = slot
            else:
                ranges.append([slot, slot, owner])
        return [[first, last, [one.node.host.encode(), one.node.port, b"id", []]] for first, last, one in ranges]

    def owner(self, name: str) -> NodeDouble:
        return self.owners[slot_of(name)]

    def other(self, name: str) -> NodeDouble:
        """A node that does not have `name`."""
        return next(one for one in self.nodes if one is not self.owner(name))

    def names_of(self, node: NodeDouble, number: int) -> list[str]:
        return [name for at in range(100 * number) if self.owner(name := f"c:{at}") is node][:number]

    def move(self, slots: Iterable[int], to: NodeDouble) -> None:
        for slot in slots:
            self.owners[slot] = to

    def begin_moving(self, name: str, to: NodeDouble) -> None:
        slot = slot_of(name)
        self.owners[slot].migrating[slot] = to
        to.importing.add(slot)
