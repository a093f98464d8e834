"""Connections that wait are accepted in numbers, and none is lost when that ends."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import pytest
import uvloop

from service.base.accepting import Acceptor
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
async def accepting(listening: socket.socket) -> AsyncIterator[None]:
    acceptor = Acceptor(listening, Greeting)
    server = await asyncio.get_running_loop().create_server(acceptor.accepted, sock=listening)
    try:
        yield
    finally:
        server.close()
        await acceptor.close()
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


def test_who_was_taken_before_the_end_is_served_and_nobody_after_it(
    listening: socket.socket, crowd: list[socket.socket]
) -> None:
    async def work() -> None:
        async with accepting(listening):
            await eventually(lambda: Greeting.made > 0)
        taken = Greeting.made
        for _ in range(10):
            await asyncio.sleep(0.001)
        assert Greeting.made == taken

    run(work)
    assert sum(was_greeted(one) for one in crowd) == Greeting.made


def was_greeted(one: socket.socket) -> bool:
    try:
        return one.recv(5) == b"hello"
    except ConnectionResetError:
        return False


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
