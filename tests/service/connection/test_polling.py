"""Connections that are polled, over real sockets: what is read, answered, written, and how they end."""

import asyncio
import contextlib
import inspect
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Protocol

import pytest

from service.connection.channel import Channel
from service.connection.polling import Polling
from tests.support import looped
from tests.support.looped import received, reset_when_closed
from tests.support.waiting import eventually


class Echo:
    """Answers with what arrives; a `defect` is one."""

    channel: Channel

    def __init__(self) -> None:
        self.reads: list[bytes] = []
        self.heard: list[str] = []
        self.ended: list[str] = []

    def opened(self) -> None:
        self.heard.append("opened")

    def received(self, data: bytes, _: float) -> None:
        self.reads.append(data)
        if data == b"defect":
            raise ValueError(data)
        if data == b"silence":
            return
        self.channel.write(data[:1], data[1:] * (100_000 if data == b"large" else 1))

    def received_end(self) -> None:
        self.channel.close()

    def blocked(self) -> None:
        self.heard.append("blocked")

    def unblocked(self) -> None:
        self.heard.append("unblocked")

    def lost(self) -> None:
        self.ended.append("lost")
        if self.reads == [b"defect at the end"]:
            raise ValueError(self.reads)


class Opened(Protocol):
    def __call__(self, client: socket.socket | None = None) -> tuple[Echo, socket.socket]:
        """Opens a connection of a new client, or accepts that of `client`."""


@contextlib.asynccontextmanager
async def polled() -> AsyncIterator[Opened]:
    polling, clients = Polling(), list[socket.socket]()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def opened(client: socket.socket | None = None) -> tuple[Echo, socket.socket]:
            client = client or socket.create_connection(listening.getsockname(), timeout=60)
            clients.append(client)
            accepted, _ = listening.accept()
            accepted.setblocking(False)
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            echo = Echo()
            polling.open(accepted.detach(), echo)
            return echo, client

        try:
            yield opened
        finally:
            polling.close()
            for client in clients:
                client.close()


def on_connections(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Runs the test in uvloop, as workers do, with what opens a connection."""

    def run(**fixtures: Any) -> None:
        async def work() -> None:
            async with polled() as opened:
                await test(opened, **fixtures)

        looped.run(work)

    signature = inspect.signature(test)
    _, *others = signature.parameters.values()
    run.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]  # pytest goes by it
    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@on_connections
async def test_each_of_many_gets_its_own_answers(opened: Opened) -> None:
    pairs = [opened() for _ in range(50)]
    for turn in range(3):
        for number, (_, client) in enumerate(pairs):
            client.sendall(b"%d of %d" % (turn, number))
        for number, (_, client) in enumerate(pairs):
            assert await asyncio.to_thread(client.recv, 100) == b"%d of %d" % (turn, number)


@on_connections
async def test_a_request_that_is_larger_than_most_is_read_in_one_piece(opened: Opened) -> None:
    echo, client = opened()
    client.sendall(b"x" * 20_000)
    answer = b""
    while len(answer) < 20_000:
        answer += await asyncio.to_thread(client.recv, 1 << 16)
    assert echo.reads == [b"x" * 20_000]


@pytest.mark.parametrize("resets", [False, True])
@on_connections
async def test_a_closed_connection_is_lost_once_and_no_other(opened: Opened, resets: bool) -> None:
    (gone, client), (other, stays) = opened(), opened()
    if resets:
        reset_when_closed(client)
    client.close()
    await eventually(lambda: gone.ended == ["lost"])
    stays.sendall(b"hello")
    assert await asyncio.to_thread(stays.recv, 100) == b"hello"
    assert (other.ended, gone.ended) == ([], ["lost"])
    gone.channel.abort()
    assert gone.ended == ["lost"]


@on_connections
async def test_who_has_gone_before_the_answer_is_written_is_lost(opened: Opened) -> None:
    echo, client = opened()
    reset_when_closed(client)
    client.sendall(b"silence")
    await eventually(lambda: bool(echo.reads))
    client.close()
    echo.channel.write(b"", b"x" * 1000)
    await eventually(lambda: echo.ended == ["lost"])


@on_connections
async def test_an_answer_to_a_lost_connection_does_not_reach_the_next_one_with_its_descriptor(opened: Opened) -> None:
    lost, client = opened()
    client.sendall(b"silence")
    await eventually(lambda: bool(lost.reads))
    descriptor, waiting = lost.channel.file, socket.create_connection(client.getpeername(), timeout=60)
    lost.channel.write(b"", b"waits to be written")
    lost.channel.abort()
    new, waiting = opened(waiting)
    assert new.channel.file == descriptor
    lost.channel.write(b"", b"comes later")
    waiting.sendall(b"hello")
    assert await asyncio.to_thread(waiting.recv, 100) == b"hello"
    assert (lost.ended, new.ended) == (["lost"], [])


@on_connections
async def test_answers_that_are_made_later_keep_the_order_of_their_requests(opened: Opened) -> None:
    echoes = [opened() for _ in range(20)]
    for _, client in echoes:
        client.sendall(b"silence")
    await eventually(lambda: all(echo.reads for echo, _ in echoes))
    for echo, client in echoes:
        client.sendall(b"second")
        echo.channel.write(b"", b"first ")
    for _, client in echoes:
        assert await asyncio.to_thread(all_of, client, 12) == b"first second"


@on_connections
async def test_a_connection_that_closes_before_its_answer_is_written_has_it_all_the_same(opened: Opened) -> None:
    echo, client = opened()
    client.sendall(b"silence")
    await eventually(lambda: bool(echo.reads))
    echo.channel.write(b"", b"answer")
    echo.channel.close()
    echo.channel.write(b"", b"too late")
    assert await asyncio.to_thread(client.recv, 100) == b"answer"
    assert await asyncio.to_thread(client.recv, 100) == b""


@on_connections
async def test_a_defect_ends_one_connection_and_is_logged(opened: Opened, caplog: pytest.LogCaptureFixture) -> None:
    (defect, client), (other, stays) = opened(), opened()
    client.sendall(b"defect")
    stays.sendall(b"hello")
    assert await asyncio.to_thread(client.recv, 100) == b""
    assert await asyncio.to_thread(stays.recv, 100) == b"hello"
    assert (defect.ended, other.ended) == (["lost"], [])
    assert "could not be answered" in caplog.text


@on_connections
async def test_a_defect_in_a_lost_connection_harms_no_other(opened: Opened, caplog: pytest.LogCaptureFixture) -> None:
    (defect, client), others = opened(), [opened()[1] for _ in range(20)]
    client.sendall(b"defect at the end")
    assert await asyncio.to_thread(client.recv, 100) == b"defect at the end"
    for one in others[:10]:  # they arrive in one turn
        one.sendall(b"before")
    client.close()
    for one in others[10:]:
        one.sendall(b"after")
    answers = [await asyncio.to_thread(one.recv, 100) for one in others]
    assert answers == [b"before"] * 10 + [b"after"] * 10
    assert defect.ended == ["lost"]
    assert "could not be ended" in caplog.text


@on_connections
async def test_what_a_reader_does_not_take_at_once_it_gets_when_it_does(opened: Opened) -> None:
    echo, client = opened()
    client.sendall(b"large")
    await eventually(lambda: echo.heard == ["opened", "blocked"])
    assert await asyncio.to_thread(all_of, client, 400_001) == b"l" + b"arge" * 100_000
    await eventually(lambda: echo.heard == ["opened", "blocked", "unblocked"])
    client.sendall(b"more")
    assert await asyncio.to_thread(client.recv, 100) == b"more"


@on_connections
async def test_a_last_answer_that_its_reader_takes_slowly_arrives_whole_before_the_end(opened: Opened) -> None:
    echo, client = opened()
    client.sendall(b"large")
    await eventually(lambda: "blocked" in echo.heard)
    echo.channel.close()
    client.sendall(b"something" * 1000)
    assert await asyncio.to_thread(received, client) == b"l" + b"arge" * 100_000
    assert echo.ended == []
    client.close()
    await eventually(lambda: echo.ended == ["lost"])


@on_connections
async def test_what_is_not_to_be_read_stays_with_its_sender(opened: Opened) -> None:
    echo, client = opened()
    echo.channel.read(False)
    client.sendall(b"hello")
    await asyncio.sleep(0.05)
    assert echo.reads == []
    echo.channel.read(True)
    assert await asyncio.to_thread(client.recv, 100) == b"hello"


@on_connections
async def test_many_pieces_arrive_in_order(opened: Opened) -> None:
    echo, client = opened()
    for number in range(0, 3000, 2):
        echo.channel.write(b"%05d" % number, b"%05d" % (number + 1))
    echo.channel.write(b"large", b"x" * 10_000)
    read = await asyncio.to_thread(all_of, client, 25_005)
    assert read == b"".join(b"%05d" % number for number in range(3000)) + b"large" + b"x" * 10_000


def all_of(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += client.recv(1 << 16)
    return data


def test_connections_left_at_the_end_are_lost() -> None:
    seen: list[Echo] = []

    async def work() -> None:
        async with polled() as opened:
            seen.append(opened()[0])

    looped.run(work)
    assert seen[0].ended == ["lost"]
