"""The deadlines of a connection, on a clock that the test turns."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from service.base import closing
from service.connection import deadlines as module
from service.connection import limits
from service.connection.deadlines import Deadlines

KEEP_ALIVE = 75.0


class Alarm:
    def __init__(self, at: float, callback: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self.at = at
        self.ring: Callable[[], None] | None = lambda: callback(*arguments)

    def cancel(self) -> None:
        self.ring = None


class Clock:
    """An event loop as far as alarms go."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.set: list[Alarm] = []

    def call_later(self, seconds: float, callback: Callable[..., None], *arguments: Any) -> Alarm:
        self.set.append(Alarm(self.now + seconds, callback, arguments))
        return self.set[-1]

    def wait(self, seconds: float) -> None:
        end = self.now + seconds
        while due := [alarm for alarm in self.set if alarm.at <= end]:
            alarm = min(due, key=lambda alarm: alarm.at)
            self.set.remove(alarm)
            self.now = alarm.at
            if alarm.ring is not None:
                alarm.ring()
        self.now = end


class Transport:
    """`left` bytes are not sent yet."""

    def __init__(self) -> None:
        self.left = 0
        self.closing = False
        self.aborted = False

    def is_closing(self) -> bool:
        return self.closing

    def get_write_buffer_size(self) -> int:
        return self.left

    def get_extra_info(self, _name: str) -> None:
        return None

    def abort(self) -> None:
        self.aborted = True


class Connection:
    """What a connection has to do with its deadlines."""

    def __init__(self, clock: Clock) -> None:
        self.told: list[str] = []
        self.transport = Transport()
        self.deadlines = Deadlines(self.transport, clock, KEEP_ALIVE, self.late, self.idle)  # type: ignore[arg-type]

    def late(self) -> None:
        self.told.append("late")

    def idle(self) -> None:
        self.told.append("idle")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "monotonic", lambda: clock.now)
    return clock


@pytest.fixture
def connection(clock: Clock) -> Connection:
    return Connection(clock)


def test_a_request_that_does_not_arrive_is_late_once(clock: Clock, connection: Connection) -> None:
    """Also if it is awaited again in between: what arrives now and then wins no time."""
    connection.deadlines.await_request()
    clock.wait(limits.HEAD_SECONDS - 1)
    connection.deadlines.await_request()
    assert connection.told == []
    clock.wait(1)
    assert connection.told == ["late"]
    clock.wait(2 * limits.HEAD_SECONDS)
    assert connection.told == ["late"]


@pytest.mark.parametrize("how", ["arrived", "answered"])
def test_a_request_that_arrived_is_not_late(clock: Clock, connection: Connection, how: str) -> None:
    """And the next one has the whole time again."""
    connection.deadlines.await_request()
    if how == "arrived":
        connection.deadlines.arrived()
    else:
        connection.deadlines.answered(clock.now)
    clock.wait(limits.HEAD_SECONDS)
    assert connection.told == []
    connection.deadlines.await_request()
    clock.wait(limits.HEAD_SECONDS)
    assert connection.told == ["late"]


def test_a_connection_is_idle_from_its_last_answer_on(clock: Clock, connection: Connection) -> None:
    """With one alarm at a time, however many answers there are."""
    for _ in range(10):
        connection.deadlines.answered(clock.now)
        clock.wait(KEEP_ALIVE - 1)
        assert len(clock.set) == 1
    assert connection.told == []
    clock.wait(1)
    assert connection.told == ["idle"]
    connection.deadlines.answered(clock.now)
    clock.wait(KEEP_ALIVE)
    assert connection.told == ["idle", "idle"]


def test_a_reader_that_takes_nothing_is_reset(clock: Clock, connection: Connection) -> None:
    """In time it was let be; and each time that the buffer fills up has its own time."""
    connection.deadlines.await_reader()
    clock.wait(closing.READ_SECONDS - 1)
    connection.deadlines.reader_took()
    clock.wait(closing.READ_SECONDS)
    connection.deadlines.await_reader()
    clock.wait(closing.READ_SECONDS - 1)
    assert not connection.transport.aborted
    clock.wait(1)
    assert connection.transport.aborted


def test_a_lost_connection_is_told_nothing_and_not_kept(clock: Clock) -> None:
    """Its memory is free at once, without the garbage collector."""
    connection = Connection(clock)
    connection.deadlines.await_request()
    connection.deadlines.await_reader()
    connection.deadlines.answered(clock.now)
    connection.deadlines.await_request()
    told, transport, kept = connection.told, connection.transport, weakref.ref(connection)
    connection.deadlines.end()
    clock.wait(2 * KEEP_ALIVE)
    gc.disable()
    try:
        del connection
        assert kept() is None
    finally:
        gc.enable()
    assert told == []
    assert not transport.aborted


def test_connections_of_one_moment_do_not_grow_old_together() -> None:
    ages = sorted(module.lifetime(100.0) for _ in range(200))
    assert 90 <= ages[0] < 95 < 105 < ages[-1] <= 110


def test_a_connection_that_ends_grows_no_older(clock: Clock, connection: Connection) -> None:
    connection.deadlines.await_age(100.0, lambda: connection.told.append("old"))
    connection.deadlines.end()
    clock.wait(200.0)
    assert connection.told == []
