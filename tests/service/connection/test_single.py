"""A request that comes on a connection of its own is answered as any other, without a protocol where that can be."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from functools import partial

import pytest

from service.base.accepting import Acceptor
from service.base.polling import Adopting, Polling
from service.connection.direct import DirectProtocol
from service.connection.light import LightConnection
from service.connection.single import _LEARNED_FOR, SingleRequests
from service.keys import form
from tests.support.both_ways import SPRINGFIELD, TARGETS, Both, normalised, request
from tests.support.connection import Connection, light_server
from tests.support.served import FORECAST
from tests.support.waiting import eventually

CLOSING = ["Connection: close"]


def single_requests(both: Both) -> SingleRequests:
    """As the server of a worker has them, in its loop."""
    return SingleRequests(light_server(both.direct, both.config(both.direct)))


def look(both: Both, data: bytes) -> bytes | LightConnection:
    return single_requests(both)(data, "192.0.2.1")


async def gone_on(both: Both, data: bytes, later: bytes = b"") -> bytes:
    """What the protocol answers that a first look leads to."""
    await both.look_at_keys()
    protocol = look(both, data)
    assert isinstance(protocol, LightConnection)
    connection = Connection(both.direct, both.config(both.direct), protocol)
    await connection.settle()
    if later:
        assert connection.transport.written == b""
        await connection.feed(later)
        await connection.settle()
    return connection.end()


def answered(both: Both, data: bytes) -> bytes | LightConnection:
    async def ask() -> bytes | LightConnection:
        await both.look_at_keys()
        return look(both, data)

    return both.running.run(ask)


def test_of_who_goes_on_nothing_is_kept(both: Both) -> None:
    """Neither what was found out, which refers to its release."""

    async def ask() -> object:
        await both.look_at_keys()
        single = single_requests(both)
        assert isinstance(single(request(f"{FORECAST}?zip_code=1", both.keys["free"], *CLOSING), ""), LightConnection)
        return single._caller.found_out

    assert both.running.run(ask) is None


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("key", ["free", "limited", "metered"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("lines", [CLOSING, ["connection: close", "Accept-Encoding: gzip"], [*CLOSING, "Cookie: a"]])
def test_a_hot_answer_is_the_same(both: Both, target: str, key: str, method: str, lines: list[str]) -> None:
    data = request(target, both.keys[key], *lines, method=method)
    expected, before = both.compare([data]), both.answered
    answer = answered(both, data)
    while key != "free" and both.tier == "near" and not isinstance(answer, bytes):  # no token was there
        expected, before = both.compare([data]), both.answered
        answer = answered(both, data)
    if both.tier == "shared":  # which has to be waited for
        assert isinstance(answer, LightConnection)
        return
    assert isinstance(answer, bytes)
    assert both.answered == before + 1
    assert normalised(answer) == normalised(expected)
    assert b"\r\nconnection: close\r\n" in answer


@pytest.mark.parametrize("lines", [[], ["Connection: keep-alive"]])
def test_a_request_in_http_1_0_is_its_connection_s_only_one(both: Both, lines: list[str]) -> None:
    data = request(SPRINGFIELD, both.keys["free"], *lines, version="1.0")
    answer = answered(both, data)
    assert isinstance(answer, bytes) is (both.tier == "near")
    if isinstance(answer, bytes):
        assert normalised(answer) == normalised(both.compare([data]))


@pytest.mark.parametrize(("key", "target"), [("free", f"{FORECAST}?zip_code=99999"), ("other", TARGETS[0])])
def test_an_error_that_is_known_is_told_again(both: Both, key: str, target: str) -> None:
    data = request(target, both.keys[key], *CLOSING)
    expected = both.compare([data])
    answer = answered(both, data)
    if both.tier == "near" or key == "free":  # else the shared cache is asked first
        assert isinstance(answer, bytes)
        assert normalised(answer) == normalised(expected)


def test_another_request_leads_to_a_protocol_that_answers_it(both: Both) -> None:
    """One that is not hot, not whole, not alone, or not the last."""
    good, lines = both.keys["free"], CLOSING
    others = {
        "not the last": request(TARGETS[0], good),
        "a wrong key": request(TARGETS[0], form.generate()[0], *lines),
        "nothing there": request("/nowhere", good, *lines),
        "two": request(TARGETS[0], good) + request(TARGETS[1], good, *lines),
        "a body": request(TARGETS[0], good, *lines, "Content-Length: 2") + b"{}",
        "another method": request(TARGETS[0], good, *lines, method="POST"),
        "nonsense": b"\x16\x03\x01 HTTP/1.0\r\n\r\n",
        "a name that ends so": request(TARGETS[0], good, "Proxy-Connection: close"),
    }
    for what, data in others.items():
        told = both.running.run(partial(gone_on, both, data))
        assert normalised(told) == normalised(both.compare([data])), what


def test_the_end_of_a_request_may_come_later(both: Both) -> None:
    data = request(TARGETS[0], both.keys["free"], *CLOSING)
    told = both.running.run(partial(gone_on, both, data[:-2], data[-2:]))
    assert normalised(told) == normalised(both.compare([data]))


def test_every_caller_is_who_it_is(both: Both) -> None:
    """Keys and addresses in turn; nothing of one is taken for another's."""
    if both.tier == "shared":
        return  # answered by protocols, one for each connection

    async def ask() -> list[bytes]:
        await both.look_at_keys()
        single, told = single_requests(both), []
        for number in range(2 * _LEARNED_FOR):
            key = both.keys["free"] if number % 3 else both.running.key
            data = request(TARGETS[number % 2], key, f"X-Request-Id: {number}", *CLOSING)
            answer = single(data, f"192.0.2.{number % 5}")
            if not isinstance(answer, bytes):  # on a busy machine, the trust in the key ends meanwhile
                await both.running.app.verifier.check(key)
                answer = single(data, f"192.0.2.{number % 5}")
            assert isinstance(answer, bytes)
            told.append(answer)
            assert isinstance(single(request(TARGETS[0], both.keys["revoked"], *CLOSING), "192.0.2.9"), LightConnection)
        return told

    for number, answer in enumerate(both.running.run(ask)):
        assert b"\r\nx-request-id: %d\r\n" % number in answer
        assert (b'"36436"' in answer) is (number % 2 == 0)


def test_who_did_not_ask_for_it_is_told_that_the_connection_closes(both: Both) -> None:
    """What looks like HTTP/1.0 may be the value of a header."""
    data = request(TARGETS[0], both.keys["free"], "X-Seen: by HTTP/1.0")
    answer = answered(both, data)
    if isinstance(answer, bytes):
        assert b"\r\nconnection: close\r\n" in answer


@contextlib.asynccontextmanager
async def connected(both: Both, sent: bytes) -> AsyncIterator[tuple[socket.socket, DirectProtocol]]:
    """A client whose first bytes are there when it is accepted, and need the parser, and the protocol they led to."""
    await both.look_at_keys()
    made: list[DirectProtocol] = []
    server = light_server(both.direct, both.config(both.direct))
    make = server.make

    def kept() -> DirectProtocol:
        made.append(make())
        return made[0]

    server.make = kept
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        polling = Polling(Adopting())
        acceptor = Acceptor(
            listening, partial(LightConnection, server), server.state.connections, polling, SingleRequests(server)
        )
        with socket.create_connection(listening.getsockname()) as client:
            client.setblocking(False)
            client.send(sent)
            acceptor.start()
            await eventually(lambda: bool(made))
            await asyncio.wait_for(acceptor.close(), 60)
            yield client, made[0]
        polling.close()
        await eventually(lambda: made[0].transport.is_closing())


def test_what_follows_many_requests_that_came_first_is_not_read_before_these_are_answered(both: Both) -> None:
    some = request("/nowhere", "") * 150

    async def flood() -> None:
        async with connected(both, some) as (client, protocol):
            longest = 0
            for _ in range(300):
                with contextlib.suppress(BlockingIOError):
                    client.send(some * 50)
                await asyncio.sleep(0)
                longest = max(longest, len(protocol.flow.held or b""))
            assert 0 < longest < 1_000_000

    both.running.run(flood)


def test_a_defect_in_what_came_first_closes_the_connection_and_keeps_no_server_open(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    def defect(*_: object) -> None:
        raise RuntimeError("as a defect would")

    monkeypatch.setattr(DirectProtocol, "_parse", defect)

    async def ask() -> None:
        async with connected(both, request("/nowhere", "", method="POST")) as (_, protocol):
            await eventually(lambda: protocol.transport.is_closing())

    both.running.run(ask)
