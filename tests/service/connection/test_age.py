"""A connection that has grown old closes with its next answer, whoever gives it; others stay open."""

import asyncio

import pytest

from service.connection.deadlines import lifetime
from tests.support.doors import TARGETS, Doors, in_worker, request
from tests.support.served import FORECAST

ASKED = {
    "a hit": TARGETS[0],
    "an error that is known": f"{FORECAST}?zip_code=99999",
    "an error of the path": "/nowhere",
    "the index": "/v1/",
    "the application": "/v1/openapi.json",
}


@pytest.mark.parametrize("what", ASKED)
@in_worker
async def test_an_old_connection_closes_with_its_next_answer(doors: Doors, what: str) -> None:
    data = request(ASKED[what], doors.keys["free"])
    connection = doors.connect()
    await connection.feed(data)
    await connection.settle()
    young = connection.channel.written
    assert not connection.channel.ends
    connection.protocol._deadlines.old_at = 0.0
    assert not connection.channel.ends, "a request may be on its way"
    await connection.feed(data)
    await connection.settle()
    old = connection.channel.written[len(young) :]
    assert b"\r\nconnection: close\r\n" not in young
    assert old.count(b"\r\nconnection: close\r\n") == 1
    assert old.startswith(young[: len(b"HTTP/1.1 200")])
    assert connection.channel.ends


@pytest.mark.parametrize("what", ["a hit", "the application"])
@in_worker
async def test_connections_close_at_the_set_age(doors: Doors, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    data = request(ASKED[what], doors.keys["free"])
    for age, closes in ((0.01, True), (0.0, False), (600.0, False)):
        monkeypatch.setattr(doors.door, "connection_age", age)
        connection = doors.connect()
        await asyncio.sleep(5 * 0.01)  # the loop's clock is coarse
        await connection.feed(data)
        await connection.settle()
        assert connection.channel.ends is closes
        connection.end()


def test_connections_of_one_moment_do_not_grow_old_together() -> None:
    ages = sorted(lifetime(100.0) for _ in range(200))
    assert 90 <= ages[0] < 95 < 105 < ages[-1] <= 110
