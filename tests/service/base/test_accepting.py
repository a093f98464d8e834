"""Connections that wait are accepted in numbers, and none is lost when that ends."""

import asyncio
import contextlib
import errno
import os
import resource
import socket
import struct
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.base.accepting import Acceptor, FirstLook
from service.base.polling import Adopting, Channel, Polled, Polling
from service.base.server import ListenerServer, plain_config
from tests.support.waiting import eventually

_MANY = 300


class Greeting(asyncio.Protocol):
    """Says hello to whoever connects, and closes."""

    made = ended = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        Greeting.made += 1
        transport.write(b"hello")
        transport.close()

    def connection_lost(self, _: Exception | None) -> None:
        Greeting.ended += 1


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    Greeting.made = Greeting.ended = 0
    with socket.create_server(("127.0.0.1", 0), backlog=2 * _MANY) as one:
        one.setblocking(False)
        yield one


@pytest.fixture
def crowd(listening: socket.socket) -> Iterator[list[socket.socket]]:
    """Many who connected, and wait to be accepted."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(socket.create_connection(listening.getsockname(), timeout=60)) for _ in range(_MANY)]


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """In uvloop, as workers do; an error in a callback fails the test."""
    errors: list[dict[str, Any]] = []

    async def watched() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        await work()

    uvloop.run(watched())
    assert errors == []


@contextlib.asynccontextmanager
async def accepting(listening: socket.socket, look: FirstLook | None = None) -> AsyncIterator[None]:
    polling = Polling(Adopting())
    acceptor = Acceptor(listening, lambda _: Greeting(), set(), polling, look)
    acceptor.start()
    try:
        yield
    finally:
        await acceptor.close()
        polling.close()
        listening.close()
        await eventually(lambda: Greeting.ended == Greeting.made)


def test_a_crowd_is_accepted_in_a_few_turns_of_the_loop(listening: socket.socket, crowd: list[socket.socket]) -> None:
    """libuv alone takes a turn for each."""

    async def work() -> None:
        async with accepting(listening):
            for _ in range(_MANY // 10):
                await asyncio.sleep(0)
            assert Greeting.made == _MANY

    run(work)
    for one in crowd:
        assert one.recv(5) == b"hello"


@pytest.mark.usefixtures("crowd")
def test_nobody_takes_a_crowd_at_once(listening: socket.socket) -> None:
    """Another worker, which looks a little later, has its share."""

    async def work() -> None:
        async with accepting(listening):
            for _ in range(3):
                await asyncio.sleep(0)
            assert 0 < Greeting.made < _MANY / 10

    run(work)


def test_all_who_wait_at_the_end_are_served_and_the_next_is_refused(
    listening: socket.socket, crowd: list[socket.socket]
) -> None:
    """Closing would reset them. Half of them have sent their request."""
    for one in crowd[::2]:
        one.sendall(b"request")
    address = listening.getsockname()

    async def work() -> None:
        async with accepting(listening, lambda data, _: b"answer to " + data):
            pass  # no turn of the loop has accepted anybody
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address, timeout=60)

    run(work)
    assert {received(one) for one in crowd[::2]} == {b"answer to request"}
    assert {received(one) for one in crowd[1::2]} == {b"hello"}


def test_who_left_before_being_accepted_does_no_harm(listening: socket.socket, crowd: list[socket.socket]) -> None:
    for one in crowd[1:]:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # reset
        one.close()

    async def work() -> None:
        async with accepting(listening):
            assert await asyncio.to_thread(crowd[0].recv, 5) == b"hello"
            with await asyncio.to_thread(socket.create_connection, listening.getsockname(), 60) as late:
                assert await asyncio.to_thread(late.recv, 5) == b"hello"

    run(work)


def test_who_sent_its_request_gets_the_answer_without_a_protocol(
    listening: socket.socket, crowd: list[socket.socket]
) -> None:
    seen = set()

    def look(data: bytes, address: str) -> bytes:
        seen.add((data, address))
        return b"answer to " + data

    for number, one in enumerate(crowd):
        one.sendall(b"%d" % number)

    async def work() -> None:
        async with accepting(listening, look):
            await eventually(lambda: len(seen) == len(crowd))

    run(work)
    assert seen == {(b"%d" % number, "127.0.0.1") for number in range(_MANY)}
    assert [received(one) for one in crowd] == [b"answer to %d" % number for number in range(_MANY)]
    assert Greeting.made == 0


def test_who_has_sent_nothing_yet_gets_a_protocol(listening: socket.socket, crowd: list[socket.socket]) -> None:
    async def work() -> None:
        async with accepting(listening, lambda *_: b"never"):
            await eventually(lambda: Greeting.made == _MANY)

    run(work)
    assert {received(one) for one in crowd} == {b"hello"}


def test_one_after_the_other_gets_a_protocol(listening: socket.socket) -> None:
    def ask() -> bytes:
        with socket.create_connection(listening.getsockname(), timeout=60) as one:
            return received(one)

    async def work() -> None:
        async with accepting(listening, lambda *_: b"never"):
            for _ in range(5):
                assert await asyncio.to_thread(ask) == b"hello"

    run(work)


def test_the_protocol_that_looking_leads_to_goes_on(listening: socket.socket) -> None:
    class GoesOn(asyncio.Protocol):
        def __init__(self, data: bytes) -> None:
            self._data = data

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            self._transport = transport

        def data_received(self, data: bytes) -> None:
            self._transport.write(self._data + data)
            self._transport.close()

    looked = threading.Event()

    def look(data: bytes, _: str) -> GoesOn:
        looked.set()
        return GoesOn(data)

    async def work() -> None:
        with socket.create_connection(listening.getsockname(), timeout=60) as one:
            one.sendall(b"first")
            async with accepting(listening, look):
                assert await asyncio.to_thread(looked.wait, 60)
                one.sendall(b" and second")
                assert await asyncio.to_thread(received, one) == b"first and second"

    run(work)


def test_an_answer_that_the_kernel_does_not_take_at_once_arrives_whole(listening: socket.socket) -> None:
    answer = bytes(range(256)) * (64 << 10)  # 16 MiB: more than fits into any buffer of a socket

    async def work() -> None:
        async with accepting(listening, lambda *_: answer):
            with socket.create_connection(listening.getsockname(), timeout=60) as one:
                one.sendall(b"request")
                assert await asyncio.to_thread(received, one) == answer

    run(work)


def test_a_server_that_stops_waits_for_who_reads_the_end_of_an_answer(listening: socket.socket) -> None:
    answer = bytes(range(256)) * (64 << 10)  # 16 MiB, as above
    looked = threading.Event()

    def look(_: bytes, __: str) -> bytes:
        looked.set()
        return answer

    async def nobody(scope: Any, receive: Any, send: Any) -> None:
        """Nothing comes here."""

    async def work() -> None:
        config = plain_config(nobody, HttpToolsProtocol, timeout_graceful_shutdown=60)
        server = ListenerServer(config, lambda _, __: (lambda _: Greeting(), look))
        with socket.create_connection(listening.getsockname(), timeout=60) as one:
            one.sendall(b"request")
            serving = asyncio.create_task(server.serve([listening]))
            assert await asyncio.to_thread(looked.wait, 60)
            server.should_exit = True
            await asyncio.wait([serving], timeout=0.5)
            assert not serving.done()
            assert await asyncio.to_thread(received, one) == answer
        await asyncio.wait_for(serving, 60)

    run(work)


def test_who_hangs_up_or_is_looked_at_in_vain_leaves_the_others_alone(
    listening: socket.socket, crowd: list[socket.socket], caplog: pytest.LogCaptureFixture
) -> None:
    def look(data: bytes, _: str) -> bytes:
        if data == b"defect":
            raise ValueError(data)
        return data

    crowd[0].shutdown(socket.SHUT_WR)
    crowd[1].sendall(b"defect")
    for one in crowd[2:]:
        one.sendall(b"request")

    async def work() -> None:
        async with accepting(listening, look):
            assert await asyncio.to_thread(received, crowd[-1]) == b"request"

    run(work)
    assert [received(one) for one in crowd[:3]] == [b"", b"", b"request"]
    assert "what a connection sent first could not be looked at" in caplog.text


def test_connections_leave_files_for_what_else_the_process_opens(
    listening: socket.socket, crowd: list[socket.socket]
) -> None:
    """Those that would take the last ones are reset; else a release could not be opened, nor a store connected to."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[asyncio.Transport] = []

    class Stays(asyncio.Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            taken.append(transport)

    async def work() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (open_files() + _MANY // 2, hard))
        polling = Polling(Adopting())
        acceptor = Acceptor(listening, lambda _: Stays(), set(), polling)
        acceptor.start()
        try:
            with pytest.raises(ConnectionResetError):
                await asyncio.to_thread(crowd[-1].recv, 5)
            assert 0 < len(taken) < _MANY // 2
            opened.extend(os.dup(0) for _ in range(30))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            await acceptor.close()
            for transport in taken:
                transport.abort()
            polling.close()

    opened: list[int] = []
    run(work)
    for file in opened:
        os.close(file)


def test_accepting_goes_on_when_files_can_be_opened_again(listening: socket.socket, crowd: list[socket.socket]) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def work() -> None:
        try:
            async with accepting(listening):
                resource.setrlimit(resource.RLIMIT_NOFILE, (open_files(), hard))
                for _ in range(10):
                    await asyncio.sleep(0)
                assert Greeting.made == 0
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
                await eventually(lambda: Greeting.made == _MANY)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    run(work)
    assert {received(one) for one in crowd} == {b"hello"}


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir())) - 1  # to look is one itself


def received(one: socket.socket) -> bytes:
    """Everything until the other end closes."""
    return b"".join(iter(lambda: one.recv(1 << 20), b""))


class Hello:
    """Says hello when it is polled, and nothing else."""

    channel: Channel
    closes = False

    def opened(self) -> None:
        self.channel.write_soon(b"hello")

    def received(self, _: bytes, __: float) -> bytes | None:
        return None

    def unwritten(self, rest: bytes, *, is_last: bool) -> None:
        raise AssertionError((rest, is_last))

    def answered_last(self) -> None:
        raise AssertionError

    def lost(self) -> None:
        """It has nothing to end."""


class Full(Polling):
    """The kernel has no room for the first three."""

    refused = 0

    def open(self, file: int, connection: Polled) -> None:
        if self.refused < 3:
            self.refused += 1
            os.close(file)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().open(file, connection)


def test_those_the_kernel_has_no_room_for_end_and_the_others_are_served(
    listening: socket.socket, crowd: list[socket.socket]
) -> None:
    async def work() -> None:
        polling = Full(Adopting())
        acceptor = Acceptor(listening, lambda _: Hello(), set(), polling, lambda _, __: b"nobody has sent anything")
        acceptor.start()
        said = [await asyncio.to_thread(one.recv, 5) for one in crowd]
        assert sorted(said) == [b""] * 3 + [b"hello"] * (_MANY - 3)
        await acceptor.close()
        polling.close()

    run(work)


def test_where_turns_of_the_loop_are_long_a_crowd_is_accepted_in_few_of_them(
    listening: socket.socket, crowd: list[socket.socket]
) -> None:
    """Thousands of busy connections make a turn that long, and each that waits would wait for many."""
    turns = 0

    async def work() -> None:
        async with accepting(listening):
            nonlocal turns
            while Greeting.made < _MANY and turns < 100:
                turns += 1
                time.sleep(0.02)  # noqa: ASYNC251 - the turn has to be long
                await asyncio.sleep(0)

    run(work)
    assert turns <= 6
    for one in crowd:
        assert one.recv(5) == b"hello"
