"""Other protocols at the plain port: which one arrived, and which setting of a balancer sends it."""

import asyncio
import logging
from pathlib import Path

import pytest

from config.settings import Settings
from tests.service.operators.test_listener import listened
from tests.support.doors import Doors
from tests.support.problems import problem
from tests.support.served import FORECAST, Served
from tests.support.wire import Wire

REQUEST = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
# What arrives, what it is called, and what sends it.
PROTOCOLS = {
    "PROXY 1": (
        b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 8000\r\n" + REQUEST,
        "PROXY protocol (version 1)",
        "send-proxy",
    ),
    "PROXY 1, unknown": (b"PROXY UNKNOWN\r\n" + REQUEST, "PROXY protocol (version 1)", "send-proxy"),
    "PROXY 2": (
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\1\xc6\x33\x64\1\xdc\4\x1f\x40" + REQUEST,
        "PROXY protocol (version 2)",
        "proxy_protocol_v2.enabled",
    ),
    "PROXY 2, local": (b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0" + REQUEST, "PROXY protocol (version 2)", "send-proxy-v2"),
    "TLS": (b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + bytes(range(256)) * 2, "TLS", "http://"),
    "PROXY 2, cut": (b"\r\n\r\n\0\r\nQ", "PROXY protocol (version 2)", "send-proxy-v2"),
    "TLS, cut": (b"\x16", "TLS", "http://"),
    "TLS, an alert": (b"\x15\x03\x01\0\2\2\x28", "TLS", "http://"),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x12\4\0\0\0\0\0", "HTTP/2", "http2_protocol_options"),
}


@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("kind", PROTOCOLS)
def test_another_protocol_is_called_by_its_name(worker: Served, kind: str, before: int) -> None:
    sent, name, setting = PROTOCOLS[kind]
    with worker.wire() as wire:
        for _ in range(before):
            assert wire.send(worker.head(f"{FORECAST}?zip_code=36436")).answer().status == 200
        answer = wire.send(sent).answer()
        assert problem(answer) == (400, "bad_request")
        assert answer.header("connection") == "close"
        detail = answer.json()["detail"]
        assert name in detail
        assert setting in detail
        assert wire.closes()
    (logged,) = worker.app.watch.log.find(answer.json()["request_id"])
    assert logged.detail == detail


@pytest.mark.parametrize("kind", PROTOCOLS)
def test_a_cut_of_the_network_does_not_change_the_name_of_a_protocol(worker: Served, kind: str) -> None:
    """Each byte comes alone."""
    sent, name, _ = PROTOCOLS[kind]

    async def ask() -> bytes:
        connection = Doors(worker, {}, "near").connect()
        for byte in sent[:40]:
            await connection.feed(bytes([byte]))
        await connection.settle()
        return connection.end()

    written = worker.run(ask)
    assert written.startswith(b"HTTP/1.1 400 ")
    assert f"{name} arrived".encode() in written


@pytest.mark.parametrize("kind", PROTOCOLS)
async def test_so_it_is_on_the_operators_listener(tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str) -> None:
    """Each is logged once, because a balancer asks every second."""
    sent, name, setting = PROTOCOLS[kind]
    async with listened(Settings(data_dir=str(tmp_path))) as port:

        def ask() -> str:
            with Wire(port, 30) as wire:
                answer = wire.send(sent).answer()
                assert (answer.status, answer.header("connection")) == (400, "close")
                detail: str = answer.json()["detail"]
                return detail

        with caplog.at_level(logging.WARNING, "forecast"):
            details = {await asyncio.to_thread(ask) for _ in range(3)}
    (detail,) = details
    assert name in detail
    assert setting in detail
    assert [detail in record.getMessage() for record in caplog.records if record.name == "forecast.operators"] == [True]


def test_a_method_of_such_a_name_is_a_method(worker: Served) -> None:
    with worker.wire() as wire:
        assert problem(wire.send(worker.head("/v1/", "PROXY")).answer()) == (405, "method_not_allowed")
