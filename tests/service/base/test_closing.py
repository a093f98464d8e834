"""A lingering close ends when the reader has everything, or takes nothing for long."""

import asyncio
import socket
from typing import Any

import pytest

from service.base import closing
from service.base.closing import READ_SECONDS, LingeringClose


class Transport:
    """A socket whose other end acknowledges what the test says."""

    def __init__(self) -> None:
        self.buffered = 0
        self.written = b""
        self.reading = False
        self.end = ""

    def write(self, data: bytes) -> None:
        self.written += data

    def write_eof(self) -> None:
        self.written += b"<end>"

    def resume_reading(self) -> None:
        self.reading = True

    def pause_reading(self) -> None:
        self.reading = False

    def get_write_buffer_size(self) -> int:
        return self.buffered

    def get_extra_info(self, _: str) -> Any:
        return self

    def fileno(self) -> int:
        return 0

    def setsockopt(self, *_: object) -> None:
        pass

    def close(self) -> None:
        self.end = "closed"

    def abort(self) -> None:
        self.end = "reset"


class Lingering:
    """A connection that lingers, in the kernel of which `left` bytes wait, at `now`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.left = 1000.0, 5000
        monkeypatch.setattr(closing, "monotonic", lambda: self.now)
        monkeypatch.setattr(closing, "_bytes", lambda *_: self.left)
        self.transport, self.connections = Transport(), set[Any]()
        self.protocol = LingeringClose(self.connections, b"the rest")
        self.protocol.connection_made(self.transport)  # type: ignore[arg-type]

    def look(self, seconds: float, left: int) -> str:
        """What has become of it so many seconds later."""
        self.now, self.left = self.now + seconds, left
        self.protocol._alarm.cancel()
        self.protocol._look()
        return self.transport.end


@pytest.fixture
async def lingering(monkeypatch: pytest.MonkeyPatch) -> Lingering:
    return Lingering(monkeypatch)


async def test_it_sends_the_rest_and_its_end_and_is_one_of_the_connections_until_it_is_lost(
    lingering: Lingering,
) -> None:
    assert lingering.transport.written == b"the rest<end>"
    assert lingering.connections == {lingering.protocol}
    lingering.protocol.shutdown()
    assert lingering.transport.end == ""
    lingering.protocol.connection_lost(None)
    assert lingering.connections == set()
    assert lingering.protocol._alarm.cancelled()


async def test_it_closes_when_the_reader_has_acknowledged_everything(lingering: Lingering) -> None:
    assert lingering.look(1, 1) == ""
    assert lingering.look(1, 0) == "closed"


@pytest.mark.parametrize("buffered", [0, 1])
async def test_who_takes_something_has_time_for_the_rest(lingering: Lingering, buffered: int) -> None:
    """However long all of it takes. Who takes nothing is reset."""
    lingering.transport.buffered = buffered
    left = 5000
    for _ in range(10):
        left -= 1
        assert lingering.look(READ_SECONDS - 1, left) == ""
    assert lingering.look(READ_SECONDS + 1, left) == "reset"


async def test_of_what_arrives_so_much_is_thrown_away_and_the_rest_is_not_read(lingering: Lingering) -> None:
    for _ in range(4):
        lingering.protocol.data_received(bytes(64 << 10))
    assert lingering.transport.reading
    lingering.protocol.data_received(b"more")
    assert not lingering.transport.reading


def test_the_kernel_tells_whether_everything_was_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        reader.connect(listening.getsockname())
        with listening.accept()[0] as writer:
            writer.setblocking(False)
            assert closing.all_sent(writer.fileno())
            writer.send(bytes(1 << 16))
            assert not closing.all_sent(writer.fileno())


async def test_a_connection_that_closes_already_is_let_be(lingering: Lingering) -> None:
    class Closing(Transport):
        def is_closing(self) -> bool:
            return True

        def set_protocol(self, _: object) -> None:
            raise AssertionError

    transport = Closing()
    transport.buffered = 1
    assert not closing.close(transport, set())  # type: ignore[arg-type]


async def test_a_client_that_closes_ends_it() -> None:
    """At once: the next look would come a second later."""
    ended = asyncio.Event()
    connections: set[Any] = set()

    class Answer(asyncio.Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            closing.linger(transport, connections)

    server = await asyncio.get_running_loop().create_server(Answer, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    assert await reader.read() == b""
    (lingering,) = connections
    lost = lingering.connection_lost

    def is_lost(error: Exception | None) -> None:
        lost(error)
        ended.set()

    lingering.connection_lost = is_lost
    lingering._alarm.cancel()
    writer.close()
    await asyncio.wait_for(ended.wait(), 60)
    assert connections == set()
    server.close()
