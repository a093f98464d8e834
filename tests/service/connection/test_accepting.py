"""Connections that wait are accepted in numbers, and none is lost when that ends."""

import asyncio
import contextlib
import errno
import os
import resource
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from service.connection.accepting import Acceptor
from service.connection.channel import Channel, Polled
from service.connection.polling import Polling
from tests.support.looped import received, reset_when_closed, run
from tests.support.waiting import eventually

_MANY = 300


class Greeting:
    """Says hello to whoever connects, and closes; whoever has sent something first gets an answer to that instead."""

    channel: Channel
    made = 0

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        Greeting.made += 1

    def opened(self) -> None:
        self.channel.write(b"", b"hello")
        self.channel.close()

    def received(self, data: bytes, _: float) -> None:
        if data == b"defect":
            raise ValueError(data)
        self.channel.write(b"", b"answer to " + data)
        self.channel.close()

    def received_end(self) -> None:
        self.channel.close()

    def blocked(self) -> None:
        """It has nothing else to say."""

    unblocked = lost = blocked


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    Greeting.made = 0
    with socket.create_server(("127.0.0.1", 0), backlog=2 * _MANY) as one:
        one.setblocking(False)
        yield one


@pytest.fixture
def crowd(listening: socket.socket) -> Iterator[list[socket.socket]]:
    """Many who connected, and wait to be accepted."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(socket.create_connection(listening.getsockname(), timeout=60)) for _ in range(_MANY)]


@contextlib.asynccontextmanager
async def accepting(
    listening: socket.socket, make: Callable[[tuple[str, int]], Polled] = Greeting, polls: type[Polling] = Polling
) -> AsyncIterator[None]:
    polling = polls()
    acceptor = Acceptor(listening, make, polling)
    acceptor.start()
    try:
        yield
    finally:
        acceptor.close()
        polling.close()


def test_a_crowd_is_accepted_in_a_few_turns_not_in_one(listening: socket.socket, crowd: list[socket.socket]) -> None:
    """libuv alone takes a turn for each. Another worker, which looks a little later, gets its share."""

    async def work() -> None:
        async with accepting(listening):
            for turn in range(_MANY // 10):
                await asyncio.sleep(0)
                assert turn > 2 or Greeting.made < _MANY / 10
            assert Greeting.made == _MANY

    run(work)
    for one in crowd:
        assert one.recv(5) == b"hello"


def test_waiting_connections_are_served_and_the_next_is_refused(
    listening: socket.socket, crowd: list[socket.socket]
) -> None:
    """Closing would reset them. Half of them have sent their request."""
    for one in crowd[::2]:
        one.sendall(b"request")
    address = listening.getsockname()

    async def work() -> None:
        async with accepting(listening):
            pass  # no turn of the loop has accepted anybody
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address, timeout=60)

    run(work)
    assert {received(one) for one in crowd[::2]} == {b"answer to request"}
    assert {received(one) for one in crowd[1::2]} == {b"hello"}


def test_connections_reset_before_they_are_accepted_do_no_harm(
    listening: socket.socket, crowd: list[socket.socket]
) -> None:
    for one in crowd[1:]:
        reset_when_closed(one)
        one.close()

    async def work() -> None:
        async with accepting(listening):
            assert await asyncio.to_thread(crowd[0].recv, 5) == b"hello"
            with await asyncio.to_thread(socket.create_connection, listening.getsockname(), 60) as late:
                assert await asyncio.to_thread(late.recv, 5) == b"hello"

    run(work)


def test_who_hangs_up_or_meets_a_defect_leaves_the_others_alone(
    listening: socket.socket, crowd: list[socket.socket], caplog: pytest.LogCaptureFixture
) -> None:
    crowd[0].shutdown(socket.SHUT_WR)
    crowd[1].sendall(b"defect")
    for one in crowd[2:]:
        one.sendall(b"request")

    async def work() -> None:
        async with accepting(listening):
            assert await asyncio.to_thread(received, crowd[-1]) == b"answer to request"

    run(work)
    assert [received(one) for one in crowd[:3]] == [b"", b"", b"answer to request"]
    assert "could not be answered" in caplog.text


def test_connections_leave_files_for_the_rest_of_the_process(
    listening: socket.socket, crowd: list[socket.socket]
) -> None:
    """Those that would take the last ones are reset; else a release could not be opened, nor a store connected to."""
    taken: list[Greeting] = []

    class Stays(Greeting):
        def opened(self) -> None:
            taken.append(self)

    async def work() -> None:
        with file_limit(open_files() + _MANY // 2):
            async with accepting(listening, Stays):
                with pytest.raises(ConnectionResetError):
                    await asyncio.to_thread(crowd[-1].recv, 5)
                assert 0 < len(taken) < _MANY // 2
                opened.extend(os.dup(0) for _ in range(30))

    opened: list[int] = []
    run(work)
    for file in opened:
        os.close(file)


def test_accepting_goes_on_when_files_can_be_opened_again(listening: socket.socket, crowd: list[socket.socket]) -> None:
    async def work() -> None:
        async with accepting(listening):
            with file_limit(next_file()):
                for _ in range(10):
                    await asyncio.sleep(0)
                assert Greeting.made == 0
            await eventually(lambda: Greeting.made == _MANY)

    run(work)
    assert {received(one) for one in crowd} == {b"hello"}


@contextlib.contextmanager
def file_limit(files: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def next_file() -> int:
    file = os.dup(0)
    os.close(file)
    return file


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir())) - 1  # to look is one itself


class Full(Polling):
    """The kernel has no room for the first three."""

    refused = 0

    def poll(self, file: int, events: int) -> None:
        if self.refused < 3:
            self.refused += 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().poll(file, events)


def test_connections_that_epoll_rejects_harm_no_others(listening: socket.socket, crowd: list[socket.socket]) -> None:
    async def work() -> None:
        async with accepting(listening, polls=Full):
            said = [await asyncio.to_thread(one.recv, 5) for one in crowd]
        assert sorted(said) == [b""] * 3 + [b"hello"] * (_MANY - 3)

    run(work)


def test_a_crowd_is_accepted_in_few_turns_if_they_are_long(
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
