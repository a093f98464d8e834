"""A connection that has grown old closes with its next answer, whoever gives it; others stay open."""

import pytest

from service.connection.direct import DirectProtocol
from service.connection.light import LightConnection
from tests.support.doors import TARGETS, Doors, request
from tests.support.served import FORECAST
from tests.support.waiting import eventually

ASKED = {
    "a hit": TARGETS[0],
    "an error that is known": f"{FORECAST}?zip_code=99999",
    "an error of the path": "/nowhere",
    "the index": "/v1/",
    "the application": "/v1/openapi.json",
}


@pytest.mark.parametrize("what", ASKED)
def test_an_old_connection_closes_with_its_next_answer(doors: Doors, what: str) -> None:
    data = request(ASKED[what], doors.keys["free"])

    async def ask() -> tuple[bytes, bytes, bool]:
        await doors.look_at_keys()
        connection = doors.connect()
        await connection.feed(data)
        await connection.settle()
        young = connection.transport.written
        assert not connection.transport.closing
        connection.protocol._grow_old()
        assert not connection.transport.closing, "a request may be on its way"
        await connection.feed(data)
        await connection.settle()
        return young, connection.transport.written[len(young) :], connection.transport.closing

    young, old, closed = doors.running.run(ask)
    assert b"\r\nconnection: close\r\n" not in young
    assert old.count(b"\r\nconnection: close\r\n") == 1
    assert old.startswith(young[: len(b"HTTP/1.1 200")])
    assert closed


def is_old(protocol: DirectProtocol | LightConnection) -> bool:
    return protocol._is_old if isinstance(protocol, DirectProtocol) else protocol.closes


@pytest.mark.parametrize("needs_parser", [False, True])
def test_connections_grow_old_as_the_setting_says(
    doors: Doors, monkeypatch: pytest.MonkeyPatch, needs_parser: bool
) -> None:
    """Also if another protocol goes on with them."""

    async def grows_old(age: float) -> bool:
        monkeypatch.setattr(doors.door, "connection_age", age)
        connection = doors.connect()
        if needs_parser:
            connection.pause_writing()
        if age:
            await eventually(lambda: is_old(connection.protocol))
        was = is_old(connection.protocol)
        connection.end()
        return was

    assert doors.running.run(lambda: grows_old(0.01))
    assert not doors.running.run(lambda: grows_old(0.0))


def test_an_old_connection_closes_also_if_another_protocol_goes_on_with_it(
    doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What arrives is answered by the application; no turn of the loop passes before it is looked at."""

    async def ask() -> tuple[bytes, bool]:
        await doors.look_at_keys()
        monkeypatch.setattr(doors.door, "connection_age", 0.01)
        connection = doors.connect()
        assert isinstance(connection.protocol, LightConnection)
        await eventually(lambda: is_old(connection.protocol))
        await connection.feed(request(ASKED["the application"], doors.keys["free"]))
        await connection.settle()
        closed = connection.transport.closing
        return connection.end(), closed

    answer, closed = doors.running.run(ask)
    assert answer.count(b"\r\nconnection: close\r\n") == 1
    assert closed
