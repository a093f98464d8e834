"""The operators' listener on a real socket."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest

from config.settings import Settings
from service.base.sockets import bind, url_of
from service.connection import limits
from service.keys import audit
from service.operators.listener import OperatorsListener
from tests.service.operators.test_state import WELL, instance
from tests.support.operators import READ, WRITE, Watched, actions
from tests.support.wire import Wire


@pytest.fixture
def audit_level() -> Iterator[None]:
    level = audit.log.level
    yield
    audit.log.setLevel(level)


@contextlib.asynccontextmanager
async def listened(settings: Settings) -> AsyncIterator[int]:
    """A listener with `settings`: its port."""
    with bind(settings.operator_host, 0, "operator_port") as bound:
        listener = OperatorsListener(settings, bound, actions(settings, "unix:///nowhere"))
        listener.start(Watched(lambda: instance(WELL)))
        yield bound.getsockname()[1]
        await listener.stop(30)


async def listening(settings: Settings, *requests: tuple[str, str]) -> list[int]:
    """The statuses of requests for a path under a name, to a listener with `settings`."""
    async with listened(settings) as port, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        answers = [await client.get(path, headers={"host": host}) for path, host in requests]
    return [answer.status_code for answer in answers]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_on_loopback_the_listener_is_read_under_its_own_names_alone(host: str, tmp_path: Path) -> None:
    settings = Settings(data_dir=str(tmp_path), operator_host=host, operator_allowed_hosts=("ops.example",))
    names = ("localhost:8001", "127.0.0.1", "ops.example", "rebound.example")
    statuses = await listening(settings, *(("/metrics", name) for name in names))
    assert statuses == [200, 200, 200, 421]


@pytest.mark.parametrize(("host", "status"), [(" localhost \t", 200), ("two names", 400)])
async def test_spaces_around_a_value_are_no_part_of_it(host: str, status: int, tmp_path: Path) -> None:
    """Else an Idempotency-Key with a space after it would issue a second key (RFC 9110, 5.5)."""
    async with listened(Settings(data_dir=str(tmp_path))) as port:

        def ask() -> tuple[int, str | None]:
            with Wire(port, 30) as wire:
                answer = wire.send(f"GET /history HTTP/1.1\r\nHost:{host}\r\n\r\n").answer()
                return answer.status, answer.json().get("code")

        assert await asyncio.to_thread(ask) == (status, {200: None, 400: "bad_request"}[status])


@pytest.mark.parametrize(("token", "reported"), [(None, True), (READ, False)])
async def test_beyond_loopback_the_listener_takes_a_token_and_any_name(
    token: str | None, reported: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A probe sends the address of its pod. If no token is set, the log says so once."""
    settings = Settings(data_dir=str(tmp_path), operator_host="0.0.0.0", operator_read_token=token)
    requests = ("/health/ready", "192.0.2.7"), ("/metrics", "192.0.2.7"), ("/metrics", "localhost")
    assert await listening(settings, *requests) == [200, 401, 401]
    messages = [record.getMessage() for record in caplog.records if record.name.startswith("forecast")]
    assert [("FORECAST_OPERATOR_READ_TOKEN_FILE" in message) for message in messages] == [True] * reported


@pytest.mark.usefixtures("audit_level")
async def test_it_serves_until_it_is_stopped(tmp_path: Path) -> None:
    logging.getLogger("forecast.keys.audit").setLevel(logging.ERROR)
    settings = Settings(data_dir=str(tmp_path), operator_read_token=READ, operator_write_token=WRITE)
    with bind("127.0.0.1", 0, "operator_port") as bound:
        listener = OperatorsListener(settings, bound, actions(settings, "unix:///nowhere"))
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


PROMISE = (
    f"POST /caches/purge HTTP/1.1\r\nHost: [::1]\r\nAuthorization: Bearer {WRITE}\r\n"
    "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n"
)
REFUSED = {
    "nonsense": ("nonsense\r\n\r\n", 400, "bad_request"),
    "half a head": ("GET /health/live HTTP/1.1\r\n", 408, "request_timeout"),
    "no body": (PROMISE, 408, "request_timeout"),
    "half a body": (PROMISE + "{", 408, "request_timeout"),
    "long address": (f"GET /{'x' * 9_000} HTTP/1.1\r\n\r\n", 414, "uri_too_long"),
    "large header": (f"GET / HTTP/1.1\r\nX: {'x' * 17_000}\r\n\r\n", 431, "headers_too_large"),
}


@pytest.mark.usefixtures("audit_level")
async def test_what_a_request_may_cost_is_limited_as_it_is_for_partners(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In size and in time, with errors in the form of this listener, and then the connection is closed. The log has
    no error of them, so that no client can fill it."""
    monkeypatch.setattr(limits, "HEAD_SECONDS", 0.3)
    settings = Settings(data_dir=str(tmp_path), operator_write_token=WRITE)
    async with listened(settings) as port:

        def ask(request: str) -> tuple[int, str]:
            with Wire(port, 30) as wire:
                answer = wire.send(request).answer()
                assert wire.closes()
                return answer.status, answer.json()["code"]

        answers = await asyncio.gather(*(asyncio.to_thread(ask, request) for request, *_ in REFUSED.values()))
    assert dict(zip(REFUSED, answers, strict=True)) == {
        name: (status, code) for name, (_, status, code) in REFUSED.items()
    }
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


EARLY = {
    "no token": ("POST /caches/purge", ["Content-Length: 400"], "", 401),
    "read only": ("POST /caches/purge", ["Transfer-Encoding: chunked"], "190\r\nhalf", 401),
    "no path": ("POST /nowhere", ["Content-Length: 400"], "half", 404),
    "method": ("PUT /health/live", ["Content-Length: 400"], "", 405),
    "tunnel": ("CONNECT a:443", [], "", 405),
    "not read": ("GET /health/live", ["Content-Length: 400"], "half", 200),
    "expected": ("GET /health/live", ["Content-Length: 4", "Expect: 100-continue"], "", 200),
    "large body": (
        "POST /caches/purge",
        ["Content-Length: 9000", f"Authorization: Bearer {WRITE}", "Content-Type: application/json"],
        "x" * 5000,
        413,
    ),
    "not JSON": ("POST /caches/purge", ["Content-Length: 9", f"Authorization: Bearer {WRITE}"], "", 415),
    "other site": ("POST /caches/purge", ["Content-Length: 9", "Origin: http://evil.test"], "", 403),
    "identity": ("GET /health/live", ["Transfer-Encoding: identity"], "", 400),
    "malformed chunk": (
        "POST /caches/purge",
        ["Transfer-Encoding: chunked", f"Authorization: Bearer {WRITE}", "Content-Type: application/json"],
        "1\r\n{\r\nzz\r\n",
        400,
    ),
}


@pytest.mark.usefixtures("audit_level")
async def test_an_answer_before_the_end_of_its_request_is_the_last(tmp_path: Path) -> None:
    def ask(port: int, start: str, lines: list[str], behind: str) -> tuple[int, str | None, bool]:
        good = "GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with Wire(port, 30) as wire:
            assert wire.send(good).answer().status == 200
            wire.send("\r\n".join([f"{start} HTTP/1.1", "Host: localhost", *lines, "", ""]) + behind)
            answer = wire.answer()
            wire.send_until_closed(good)
            return answer.status, answer.header("connection"), wire.closes()

    async with listened(Settings(data_dir=str(tmp_path), operator_write_token=WRITE)) as port:
        for kind, (start, lines, behind, status) in EARLY.items():
            reported = await asyncio.to_thread(partial(ask, port, start, lines, behind))
            assert reported == (status, "close", True), kind


@pytest.mark.usefixtures("audit_level")
@pytest.mark.parametrize("framing", ["Content-Length: 5", "Transfer-Encoding: chunked"])
async def test_the_body_of_a_request_that_offers_another_protocol_is_read(tmp_path: Path, framing: str) -> None:
    """Java's client offers HTTP/2 with a POST. Without its body, an order would mean something else."""
    lines = ["Host: localhost", f"Authorization: Bearer {WRITE}", "Content-Type: application/json", framing]
    head = "\r\n".join(["POST /caches/purge HTTP/1.1", *lines, "Connection: Upgrade", "Upgrade: h2c", "", ""])
    body = "5\r\n[1,2]\r\n0\r\n\r\n" if "chunked" in framing else "[1,2]"
    async with listened(Settings(data_dir=str(tmp_path), operator_write_token=WRITE)) as port:

        def ask() -> tuple[int, str]:
            with Wire(port, 30) as wire:
                wire.send(head + body)
                answer = wire.answer()
                return answer.status, answer.json()["code"]

        assert await asyncio.to_thread(ask) == (400, "invalid_body")


async def test_the_newest_connection_takes_the_place_of_the_one_that_was_idle_longest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.operators.listener.MOST_CONNECTIONS", 2)
    settings = Settings(data_dir=str(tmp_path))
    async with listened(settings) as port:

        def ask() -> None:
            request = "GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
            with Wire(port, 30) as first, Wire(port, 30) as second:
                second.send(request).answer()
                with Wire(port, 30) as third:
                    assert third.send(request).answer().status == 200
                    with pytest.raises(ConnectionResetError):
                        first.closes()
                assert second.send(request).answer().status == 200

        await asyncio.to_thread(ask)


async def test_a_connection_whose_end_lingers_goes_before_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was refused, and its client neither closes it nor has to be waited for."""
    monkeypatch.setattr("service.operators.listener.MOST_CONNECTIONS", 2)
    monkeypatch.setattr("service.connection.channel._CHECK_SECONDS", 60.0)
    settings = Settings(data_dir=str(tmp_path))
    async with listened(settings) as port:

        def ask() -> None:
            request = "GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
            with Wire(port, 30) as idle, Wire(port, 30) as refused:
                assert idle.send(request).answer().status == 200
                assert refused.send("nonsense\r\n\r\n").answer().status == 400
                for _ in range(2):
                    assert idle.send(request).answer().status == 200
                    with Wire(port, 30) as third:
                        assert third.send(request).answer().status == 200

        await asyncio.to_thread(ask)


async def test_an_encoded_separator_is_none(tmp_path: Path) -> None:
    paths = (
        "/health%2flive", "/health/live%2F", "/health/live%00", "/health/live;a=b", "/health/%2e%2e/metrics",
        "/page%2fpage.css", "/page/..%2fpage.css", "/page/%2e%2e/page.css", "/page/page%252ecss", "//metrics",
        "/metrics%0a",
    )  # fmt: skip
    async with listened(Settings(data_dir=str(tmp_path))) as port:

        def ask(path: str) -> int:
            with Wire(port) as wire:
                return wire.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").answer().status

        for path in paths:
            assert await asyncio.to_thread(ask, path) == 404, path
        for path in ("/page/page%2Ecss", "/%6detrics"):
            assert await asyncio.to_thread(ask, path) == 200, path
