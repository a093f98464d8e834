"""A connection that closes ends when its reader has everything, or takes nothing for long."""

import socket
from collections.abc import Iterator

import pytest

from service.connection import channel, closing
from service.connection.closing import READ_SECONDS
from service.connection.polling import Polling
from tests.service.connection.test_polling import Echo


class Lingering:
    """A channel that closes, in the kernel of which `left` bytes wait, at `now`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.left = 1000.0, 5000
        monkeypatch.setattr(channel, "monotonic", lambda: self.now)
        monkeypatch.setattr(closing, "not_acknowledged", lambda _: self.left)
        self.client, own = socket.socketpair()
        own.setblocking(False)
        self.echo, self.polling = Echo(), Polling()
        self.polling.open(own.detach(), self.echo)
        self.echo.channel.write(b"", b"the rest")
        self.echo.channel.close(more_may_arrive=True)

    def look(self, seconds: float, left: int) -> bool:
        """Whether it is still there so many seconds later."""
        self.now, self.left = self.now + seconds, left
        one = self.echo.channel
        assert one._alarm is not None
        one._alarm.cancel()
        one._check_reader()
        return one.file >= 0


@pytest.fixture
async def lingering(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lingering]:  # type: ignore[misc]
    made = Lingering(monkeypatch)
    yield made
    made.polling.close()
    made.client.close()


async def test_it_sends_the_rest_and_its_end(lingering: Lingering) -> None:
    assert (lingering.client.recv(100), lingering.client.recv(100)) == (b"the rest", b"")
    assert lingering.echo.ended == []


async def test_it_closes_when_the_reader_has_acknowledged_everything(lingering: Lingering) -> None:
    assert lingering.look(1, 1)
    assert not lingering.look(1, 0)
    assert lingering.echo.ended == ["lost"]


async def test_who_takes_something_has_time_for_the_rest(lingering: Lingering) -> None:
    left = 5000
    for _ in range(10):
        left -= 1
        assert lingering.look(READ_SECONDS - 1, left)
    assert not lingering.look(READ_SECONDS + 1, left)


async def test_of_what_arrives_so_much_is_discarded_and_the_rest_is_not_read(lingering: Lingering) -> None:
    one, sent = lingering.echo.channel, 0
    lingering.client.setblocking(False)
    while one._discarded <= 256 << 10:
        sent += lingering.client.send(bytes(60 << 10))
        while one._discarded < sent:
            assert one.take() is None
    assert not one._events


def test_the_kernel_knows_whether_everything_was_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        reader.connect(listening.getsockname())
        with listening.accept()[0] as writer:
            writer.setblocking(False)
            assert closing.all_sent(writer.fileno())
            writer.send(bytes(1 << 16))
            assert not closing.all_sent(writer.fileno())


async def test_a_connection_whose_other_end_was_reset_is_lost_when_it_closes() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        own, _ = server.accept()
    own.setblocking(False)
    echo, polling = Echo(), Polling()
    polling.open(own.detach(), echo)
    closing.drop_unsent(client.fileno())
    client.close()
    echo.channel.close(more_may_arrive=True)
    assert echo.ended == ["lost"]
    polling.close()
