"""A connection, whatever is asked on it: it goes on, it has its time, and it leaves nothing behind."""

import asyncio
import socket

import msgspec
import pytest

from config.settings import Settings
from service.base.telemetry import REJECTED
from service.connection.limits import HEAD_SECONDS
from tests.support.connection import Connection
from tests.support.doors import TARGETS, Doors, in_worker, request
from tests.support.served import served
from tests.support.waiting import eventually


async def _asked(doors: Doors, *chunks: bytes) -> Connection:
    connection = doors.connect()
    for chunk in chunks:
        await connection.feed(chunk)
        await connection.settle()
    return connection


@pytest.mark.parametrize("doors", ["shared"], indirect=True)
@in_worker
async def test_a_defect_in_an_answer_that_waited_ends_the_connection(
    doors: Doors, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """No deadline runs while a request waits."""
    connection = doors.connect()
    monkeypatch.setattr(doors.door.pipeline, "finish", lambda *_: 1 / 0)
    await connection.feed(request(TARGETS[0], doors.keys["free"]))
    await eventually(lambda: connection.channel.ends)
    assert connection.end() == b""
    assert "could not be answered" in caplog.text


@pytest.mark.parametrize("asks", [False, True])
@in_worker
async def test_a_stopping_worker_closes_idle_connections(
    doors: Doors, monkeypatch: pytest.MonkeyPatch, asks: bool
) -> None:
    monkeypatch.setattr(doors.door, "linger", 0.01)
    hot = request(TARGETS[0], doors.keys["free"])
    connection = await _asked(doors, hot)
    connection.protocol.shutdown()
    assert not connection.channel.ends
    if asks:
        await connection.feed(hot)
        await connection.settle()
    await eventually(lambda: connection.channel.ends)
    assert connection.end().count(b"HTTP/1.1 200 ") == 1 + asks


@in_worker
async def test_an_empty_line_keeps_no_connection_of_a_stopping_worker(
    doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is no request, but the parser has to look at it. A request would have ten seconds to arrive."""
    monkeypatch.setattr(doors.door, "linger", 0.01)
    monkeypatch.setattr("service.connection.limits.HEAD_SECONDS", 600.0)
    connection = await _asked(doors, request(TARGETS[0], doors.keys["unknown"]))
    monkeypatch.setattr(doors.door.pipeline, "draining", True)
    connection.protocol.shutdown()
    await connection.feed(b"\r\n")
    await eventually(lambda: connection.channel.ends)
    assert connection.end().count(b"HTTP/1.1 401 ") == 1


@in_worker
async def test_a_connection_leaves_nothing_behind(doors: Doors) -> None:
    hot = request(TARGETS[0], doors.keys["free"])
    for chunks in ([hot], [hot, hot + hot]):
        connection = await _asked(doors, *chunks)
        alarm = connection.protocol._deadlines._alarm
        assert alarm is not None
        assert connection.protocol in doors.door.state.connections
        connection.end()
        assert connection.protocol not in doors.door.state.connections
        assert alarm.cancelled()


@pytest.mark.parametrize("asks", [True, False])
def test_a_silent_connection_is_closed_in_time(settings: Settings, monkeypatch: pytest.MonkeyPatch, asks: bool) -> None:
    monkeypatch.setattr("service.connection.limits.HEAD_SECONDS", 0.4 if not asks else 60.0)
    with served(msgspec.structs.replace(settings, keep_alive=1)) as worker:
        head = worker.head(TARGETS[0]).encode()
        worker.ask(TARGETS[0])
        with socket.create_connection(("127.0.0.1", worker.port), timeout=60) as silent:
            if asks:
                for _ in range(3):
                    silent.sendall(head)
                    assert silent.recv(1 << 16).startswith(b"HTTP/1.1 200")
            assert silent.recv(1) == b""


@pytest.mark.parametrize("answered", [False, True])
@in_worker
async def test_who_sends_the_first_byte_late_wins_no_time(doors: Doors, answered: bool) -> None:
    """A first request has its time from the beginning of the connection; the next one its own."""
    hot = request(TARGETS[0], doors.keys["free"])
    connection = await _asked(doors, *([hot] if answered else []))
    deadlines = connection.protocol._deadlines
    if deadlines.arrives_since is not None:
        deadlines.arrives_since -= HEAD_SECONDS - 1
        deadlines.watch()
    await connection.feed(hot[:9])
    assert deadlines._alarm is not None
    left = deadlines._alarm.when() - asyncio.get_running_loop().time()
    connection.end()
    assert (left > HEAD_SECONDS / 2) == answered


@in_worker
async def test_who_is_reset_is_counted_once_whatever_it_has_sent(doors: Doors, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors.door, "most_connections", 0)
    monkeypatch.setattr("service.connection.limits.MOST_OVER_LIMIT", 0)
    for first in (request(TARGETS[0], doors.keys["free"]), b""):
        before = doors.running.app.telemetry.sum(REJECTED)
        connection = Connection(doors.door, first=first)
        assert connection.channel.ends
        assert connection.end() == b""
        assert doors.running.app.telemetry.sum(REJECTED) == before + 1
