"""Replies on a connection of our own: how long one may take while others come."""

import asyncio
from time import monotonic

import msgspec
import pytest

from service.redis import pipelined
from service.redis.pipelined import PipelinedConnection
from tests.support.virtual import VirtualLoop

_TIMEOUT = 0.25


class Command(msgspec.Struct, eq=False):
    sent: float


class Transport(asyncio.WriteTransport):
    """Leads nowhere."""

    def write(self, data: object) -> None: ...

    def abort(self) -> None: ...


class Connection(PipelinedConnection[Command]):
    lost = ""

    def ask(self) -> None:
        self._begin()
        self._commands.append(Command(asyncio.get_running_loop().time()))
        self._send(b"")

    def _read(self, reply: object) -> None:
        assert reply == b"OK"
        self._take()

    def _lost(self, command: Command, reason: str) -> None:
        self.lost = reason


def ends_at(delay: float, monkeypatch: pytest.MonkeyPatch) -> float | None:
    """When a connection ends on which a command goes out every 10 ms and each reply takes `delay` seconds."""

    async def work() -> float | None:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(pipelined, monotonic.__name__, loop.time)
        connection = Connection(Transport(), _TIMEOUT)
        for _ in range(300):
            connection.ask()
            loop.call_later(delay, connection.data_received, b"+OK\r\n")
            await asyncio.sleep(0.01)
            if not connection.is_open:
                assert connection.lost == "Timeout reading from the server"
                return loop.time()
        return None

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work())


@pytest.mark.parametrize("share", [0.4, 0.6, 0.9])
def test_replies_that_come_in_time_end_nothing_however_many_are_under_way(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ends_at(share * _TIMEOUT, monkeypatch) is None


def test_a_reply_that_takes_too_long_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = ends_at(1.2 * _TIMEOUT, monkeypatch)
    assert ended is not None
    assert ended <= 1.2 * _TIMEOUT
