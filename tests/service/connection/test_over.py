"""What the application does once its connection is over reaches nobody, and is no error of the worker's."""

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from service.base.server import plain_config
from service.connection.protocol import LimitedProtocol
from service.request.response import Response
from tests.support.connection import KeptTransport, server_state
from tests.support.waiting import settled

HEAD = b"%b / HTTP/1.1\r\nHost: forecast.test\r\nContent-Length: 5\r\n%b\r\n"
Work = Callable[[Any, Any], Awaitable[None]]


class Transport(KeptTransport):
    """It cannot be written to once its end was sent or it was lost, and its reader is slow."""

    over = False

    def write(self, data: bytes) -> None:
        if self.over:
            raise RuntimeError
        super().write(data)

    def write_eof(self) -> None:
        self.over = True

    def get_write_buffer_size(self) -> int:
        return 1

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self if name == "socket" else default

    def getsockname(self) -> str:
        return ""

    def getpeername(self) -> str:
        return ""


class Application:
    """Answers with what the test gives it to do, when that says so."""

    most_connections = 1
    connection_age = 0.0

    def __init__(self, work: Work) -> None:
        self.work = work
        self.may_go_on = asyncio.Event()
        self.ended: list[object] = []

    def rejected(self, code: str) -> None:
        """Nobody counts."""

    def refusal(self, code: str, request_id: bytes, address: str | None, detail: str | None = None) -> Response:
        return Response.of(408, (), b"refused", code)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.may_go_on.wait()
        try:
            await self.work(receive, send)
            self.ended.append("well")
        except RuntimeError as error:
            self.ended.append(error)
            raise


def connected(work: Work) -> tuple[Application, LimitedProtocol, Transport]:
    application = Application(work)
    config = plain_config(application, LimitedProtocol)
    protocol = LimitedProtocol(config, server_state(), {}, asyncio.get_running_loop())
    transport = Transport(protocol)  # type: ignore[arg-type]
    protocol.connection_made(transport)  # type: ignore[arg-type]
    return application, protocol, transport


async def answer(_: Any, send: Any) -> None:
    headers = [(b"content-length", b"2"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok"})


async def test_what_is_under_way_hears_that_its_client_has_gone_while_a_request_waits_for_it() -> None:
    """And neither keeps the connection: the collector runs seldom."""
    application, protocol, transport = connected(answer)
    protocol.data_received(HEAD % (b"GET", b""))
    protocol.data_received(b"hello" + HEAD % (b"GET", b""))
    await settled()
    transport.over = True
    protocol.connection_lost(ConnectionResetError())
    application.may_go_on.set()
    await settled()
    assert application.ended == ["well"]
    assert transport.written == b""
    there = weakref.ref(protocol)
    del transport.protocol  # real ones forget it, too
    gc.collect()
    gc.disable()
    try:
        del protocol, transport
        assert there() is None
    finally:
        gc.enable()


async def test_who_was_refused_for_being_late_is_not_told_to_go_on() -> None:
    async def read(receive: Any, _: Any) -> None:
        assert await receive() == {"type": "http.disconnect"}

    application, protocol, transport = connected(read)
    protocol.data_received(HEAD % (b"POST", b"Expect: 100-continue\r\n"))
    protocol._late()
    application.may_go_on.set()
    await settled()
    assert application.ended == ["well"]
    assert transport.written.endswith(b"refused")


async def test_a_last_answer_that_lingers_is_not_cut_by_a_failure_behind_it() -> None:
    async def answer_and_fail(receive: Any, send: Any) -> None:
        await answer(receive, send)
        raise RuntimeError

    application, protocol, transport = connected(answer_and_fail)
    protocol.data_received(HEAD % (b"GET", b"") + b"hello")
    application.may_go_on.set()
    await settled()
    assert len(application.ended) == 1
    assert transport.written.endswith(b"ok")
    assert not transport.is_closing()
    assert transport.protocol is not protocol
    transport.protocol.connection_lost(None)  # type: ignore[union-attr]  # it is not light


@pytest.fixture(autouse=True)
def _no_log(caplog: pytest.LogCaptureFixture) -> None:
    """What fails on purpose is of no interest."""
    caplog.set_level("CRITICAL")
