"""Many requests in one read: each begins when those before it are answered, so that they cost what one costs."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.support.connection import Connection
from tests.support.doors import Doors
from tests.support.served import FORECAST, Served

GOOD = f"{FORECAST}?zip_code=36436"
MANY = 1_000
# Kinds of requests, as many in one read as there is room for.
KINDS = {
    "nobody's": "GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: {id}\r\n\r\n",
    "hot": "GET {good} HTTP/1.1\r\nHost: a\r\nx-api-key: {key}\r\nX-Request-Id: {id}\r\n\r\n",
    "with bodies": "POST / HTTP/1.1\r\nHost: a\r\nX-Request-Id: {id}\r\nContent-Length: 1\r\n\r\nx",
    "in chunks": "POST / HTTP/1.1\r\nHost: a\r\nX-Request-Id: {id}\r\nTransfer-Encoding: chunked\r\n\r\n"
    "4\r\n\r\n\r\n\r\n0\r\n\r\n",
    "after blank lines": "\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: {id}\r\n\r\n",
}


def run(worker: Served, test: Callable[[Connection], Awaitable[None]]) -> None:
    async def within() -> None:
        await test(Doors(worker, {}, "near").connect())

    worker.run(within)


def requests(worker: Served, kind: str, first: int = 0, number: int = MANY) -> bytes:
    one = KINDS[kind]
    return "".join(one.format(id=f"r{n}", good=GOOD, key=worker.key) for n in range(first, first + number)).encode()


@pytest.mark.parametrize("kind", KINDS)
def test_requests_of_one_read_begin_one_after_the_other(worker: Served, kind: str) -> None:
    worker.ask(GOOD)

    async def test(connection: Connection) -> None:
        channel = connection.channel
        await connection.feed(requests(worker, kind))
        begun = 0
        until = asyncio.get_running_loop().time() + 30
        while connection.holds or connection.tasks:
            begun = max(begun, len(connection.tasks))
            assert not (connection.holds and channel.reading)
            assert asyncio.get_running_loop().time() < until
            await asyncio.sleep(0)
        assert begun <= 3
        assert channel.reading
        answers = channel.written.split(b"x-request-id: ")[1:]
        assert [answer.split(b"\r", 1)[0].decode() for answer in answers] == [f"r{n}" for n in range(MANY)]
        connection.end()

    run(worker, test)


def test_hot_requests_of_one_read_leave_others_their_turn(worker: Served) -> None:
    worker.ask(GOOD)

    async def test(connection: Connection) -> None:
        await connection.feed(requests(worker, "hot"))
        assert 0 < connection.channel.writes < MANY
        connection.end()

    run(worker, test)


def test_what_is_held_for_a_connection_that_is_lost_is_let_go(worker: Served) -> None:
    async def test(connection: Connection) -> None:
        await connection.feed(requests(worker, "hot"))
        written = len(connection.end())
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(connection.channel.written) == written
        assert not connection.holds

    run(worker, test)
