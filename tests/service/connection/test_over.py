"""What the application does once its connection is over reaches nobody, and is no error of the worker's."""

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from service.connection import door
from service.request.response import Response
from tests.support.connection import Connection, start_clock
from tests.support.waiting import settled

HEAD = b"%b / HTTP/1.1\r\nHost: forecast.test\r\nContent-Length: 5\r\n%b\r\n"
Work = Callable[[Any, Any], Awaitable[None]]


class Door(door.Door):
    """Its application answers with what the test gives it to do, when that says so."""

    def __init__(self, work: Work) -> None:
        super().__init__(self.serve, 1, keep_alive=75.0)
        start_clock(self)
        self.work = work
        self.may_go_on = asyncio.Event()
        self.ended: list[object] = []

    def rejected(self, code: str) -> None:
        """Nobody counts."""

    def refusal(self, code: str, request_id: bytes, address: str, detail: str | None = None) -> Response:
        return Response.of(408, (), b"refused", code)

    async def serve(self, scope: Any, receive: Any, send: Any) -> None:
        await self.may_go_on.wait()
        try:
            await self.work(receive, send)
            self.ended.append("well")
        except RuntimeError as error:
            self.ended.append(error)
            raise


def connected(work: Work) -> tuple[Door, Connection]:
    made = Door(work)
    return made, Connection(made)


async def answer(_: Any, send: Any) -> None:
    headers = [(b"content-length", b"2"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok"})


async def test_what_is_under_way_hears_that_its_client_has_gone_while_a_request_waits_for_it() -> None:
    application, connection = connected(answer)
    connection.receive(HEAD % (b"GET", b""))
    connection.receive(b"hello" + HEAD % (b"GET", b""))
    await settled()
    connection.lose()
    application.may_go_on.set()
    await settled()
    assert application.ended == ["well"]
    assert connection.channel.written == b""
    there = weakref.ref(connection.protocol)
    gc.collect()
    gc.disable()
    try:
        del connection
        assert there() is None
    finally:
        gc.enable()


async def test_a_client_refused_for_lateness_gets_no_100_continue() -> None:
    async def read(receive: Any, _: Any) -> None:
        assert await receive() == {"type": "http.disconnect"}

    application, connection = connected(read)
    connection.receive(HEAD % (b"POST", b"Expect: 100-continue\r\n"))
    connection.protocol.expire()
    application.may_go_on.set()
    await settled()
    assert application.ended == ["well"]
    assert connection.channel.written.endswith(b"refused")


async def test_a_last_answer_that_lingers_is_not_cut_by_a_failure_behind_it() -> None:
    async def answer_and_fail(receive: Any, send: Any) -> None:
        await answer(receive, send)
        raise RuntimeError

    application, connection = connected(answer_and_fail)
    connection.channel.lingers = True
    connection.receive(HEAD % (b"GET", b"") + b"hello")
    application.may_go_on.set()
    await settled()
    assert len(application.ended) == 1
    assert connection.channel.written.endswith(b"ok")
    assert connection.channel.ends
    assert connection.channel.file >= 0
    connection.lose()


@pytest.fixture(autouse=True)
def _no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")
