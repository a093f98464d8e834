"""The server's end of an MgetConnection, in the hands of a test."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise

from service.redis.mget import MgetConnection, MgetError, Values


def reply_to_mget(values: Sequence[bytes | None]) -> bytes:
    """As Redis writes it."""
    words = [b"$-1\r\n" if value is None else b"$%d\r\n%b\r\n" % (len(value), value) for value in values]
    return b"*%d\r\n%b" % (len(values), b"".join(words))


class Wire(asyncio.WriteTransport):
    """`sent` is what no `taken` has taken; `ended` is how often the connection was ended from our side."""

    def __init__(self, timeout: float = 60) -> None:
        super().__init__()
        self.sent = b""
        self.ended = 0
        self.connection = MgetConnection(self, timeout)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.ended, "written to a connection that was ended"
        self.sent += bytes(data)

    def abort(self) -> None:
        """As real transports do it: the protocol is told, in a later turn."""
        self.ended += 1
        asyncio.get_running_loop().call_soon(self.connection.connection_lost, None)

    def taken(self) -> list[list[str]]:
        """The names of every command that was sent, whole."""
        words, self.sent = self.sent.decode("ascii").split("\r\n"), b""
        assert words.pop() == ""
        commands: list[list[str]] = []
        while words:
            count = int(words.pop(0).removeprefix("*"))
            parts = [(words.pop(0), words.pop(0)) for _ in range(count)]
            assert all(length == f"${len(word)}" for length, word in parts)
            assert parts[0][1] == "MGET"
            commands.append([word for _, word in parts[1:]])
        return commands

    def arrive(self, data: bytes, cuts: Sequence[int] = ()) -> None:
        """`data` in pieces, cut at these offsets."""
        edges = [0, *sorted(cuts), len(data)]
        for start, end in pairwise(edges):
            if end > start:
                self.connection.data_received(data[start:end])


class Asked:
    """Commands in the order in which they were sent, and everything that each was told: once, or it is a defect."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.told: list[list[Values | MgetError]] = []

    def ask(self, count: int) -> None:
        mine: list[Values | MgetError] = []
        self.told.append(mine)
        self.wire.connection.ask([f"k{number}" for number in range(count)], mine.append)

    @property
    def outcomes(self) -> list[Values | str | None]:
        """Of each command: values, why there are none, or None while it waits."""
        assert all(len(mine) <= 1 for mine in self.told), "told twice"
        return [(str(mine[0]) if isinstance(mine[0], MgetError) else mine[0]) if mine else None for mine in self.told]

    @property
    def refused(self) -> list[bool]:
        """Of each command: whether it was Redis that gave it no values."""
        return [isinstance(mine[0], MgetError) and mine[0].answered for mine in self.told if mine]
