"""The operators' listener on a real socket."""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from config.settings import Settings
from service.base.sockets import bind, url_of
from service.edge.admission import limits
from service.keys import audit
from service.operators.actions import Actions
from service.operators.endpoints import OperatorsApp
from service.operators.listener import OperatorsListener, warn_if_open
from tests.service.operators.test_state import WELL, instance
from tests.support.key_store import PEPPER
from tests.support.operators import READ, WRITE, Watched, purge
from tests.support.wire import Wire


@pytest.fixture
def audit_level() -> Iterator[None]:
    level = audit.log.level
    yield
    audit.log.setLevel(level)


@pytest.mark.parametrize(
    ("host", "token", "warned"),
    [("0.0.0.0", None, True), ("0.0.0.0", READ, False), ("127.0.0.1", None, False), ("localhost", None, False)],
)
def test_a_listener_that_anybody_can_read_is_warned_of(
    host: str, token: str | None, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Once, and it says what to set; a loopback address is nobody else's to reach."""
    settings = Settings(data_dir="/nowhere", operator_read_token=token)
    with bind(host, 0, "operator_port") as bound:
        warn_if_open(settings, bound)
    told = [record.getMessage() for record in caplog.records]
    assert [("FORECAST_OPERATOR_READ_TOKEN_FILE" in message) for message in told] == [True] * warned


@pytest.mark.usefixtures("audit_level")
async def test_it_serves_until_it_is_stopped(tmp_path: Path) -> None:
    """HEAD has the length of the body and not the body; changes of keys are logged at every level from then on."""
    logging.getLogger("forecast.keys.audit").setLevel(logging.ERROR)
    settings = Settings(data_dir=str(tmp_path), operator_read_token=READ, operator_write_token=WRITE)
    with bind("127.0.0.1", 0, "operator_port") as bound:
        listener = OperatorsListener(settings, bound, Actions("unix:///nowhere", PEPPER, tmp_path, purge))
        listener.start(Watched(lambda: instance(WELL)))
        async with httpx.AsyncClient(base_url=url_of(bound), headers={"authorization": f"Bearer {READ}"}) as client:
            got, head = await client.get("/health/ready"), await client.head("/health/ready")
            assert (await client.post("/keys/0/revoke")).status_code == 403
            await listener.stop(30)
            with pytest.raises(httpx.TransportError):
                await client.get("/health/live")
    assert (got.status_code, head.status_code, head.content) == (200, 200, b"")
    assert head.headers["content-length"] == got.headers["content-length"] == str(len(got.content))
    assert audit.log.isEnabledFor(logging.INFO)


PROMISE = f"POST /caches/purge HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {WRITE}\r\nContent-Length: 2\r\n\r\n"
REFUSED = {
    "nonsense": ("CONNECT a:443 HTTP/1.1\r\n\r\n", 400, "bad_request"),
    "half a head": ("GET /health/live HTTP/1.1\r\n", 408, "request_timeout"),
    "no body": (PROMISE, 408, "request_timeout"),
    "half a body": (PROMISE + "{", 408, "request_timeout"),
    "long address": (f"GET /{'x' * 9_000} HTTP/1.1\r\n\r\n", 414, "uri_too_long"),
    "large header": (f"GET / HTTP/1.1\r\nX: {'x' * 17_000}\r\n\r\n", 431, "headers_too_large"),
}


@pytest.mark.usefixtures("audit_level")
async def test_what_a_request_may_cost_is_limited_as_it_is_for_partners(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In size and in time, with errors in the form of this listener, and then the connection is closed."""
    monkeypatch.setattr(limits, "HEAD_SECONDS", 0.3)
    settings = Settings(data_dir=str(tmp_path), operator_write_token=WRITE)
    with bind("127.0.0.1", 0, "operator_port") as bound:
        port = bound.getsockname()[1]
        listener = OperatorsListener(settings, bound, Actions("unix:///nowhere", PEPPER, tmp_path, purge))
        listener.start(Watched(lambda: instance(WELL)))

        def ask(request: str) -> tuple[int, str]:
            with Wire(port, 30) as wire:
                answer = wire.send(request).answer()
                assert wire.closes()
                return answer.status, answer.json()["code"]

        answers = await asyncio.gather(*(asyncio.to_thread(ask, request) for request, *_ in REFUSED.values()))
        await listener.stop(30)
    assert dict(zip(REFUSED, answers, strict=True)) == {
        name: (status, code) for name, (_, status, code) in REFUSED.items()
    }


async def test_the_newest_connection_takes_the_place_of_the_one_that_was_idle_longest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that nobody keeps a health check out; whoever has just asked stays."""
    monkeypatch.setattr(OperatorsApp, "most_connections", 2)
    settings = Settings(data_dir=str(tmp_path))
    with bind("127.0.0.1", 0, "operator_port") as bound:
        port = bound.getsockname()[1]
        listener = OperatorsListener(settings, bound, Actions("unix:///nowhere", PEPPER, tmp_path, purge))
        listener.start(Watched(lambda: instance(WELL)))

        def ask() -> None:
            request = "GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n"
            with Wire(port, 30) as first, Wire(port, 30) as second:
                second.send(request).answer()
                with Wire(port, 30) as third:
                    assert third.send(request).answer().status == 200
                    with pytest.raises(ConnectionResetError):
                        first.closes()
                assert second.send(request).answer().status == 200

        await asyncio.to_thread(ask)
        await listener.stop(30)
