"""What a connection may cost, in size and time; what exceeds it is refused in the contract's form."""

import contextlib
import select
import socket

import msgspec
import pytest

from config.settings import Settings
from service.connection import closing, limits
from tests.support.problems import refused
from tests.support.served import FORECAST, Served, served
from tests.support.wire import Wire, drip

GOOD = f"{FORECAST}?zip_code=36436"
SHORT = 0.3


@pytest.fixture
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is 10 s; its effect is the same sooner."""
    monkeypatch.setattr(limits, "HEAD_SECONDS", SHORT)


def test_the_limits_are_those_that_the_contract_documents() -> None:
    assert limits.MOST_URL_BYTES == 8 * 1024
    assert (limits.MOST_HEADER_BYTES, limits.MOST_HEADERS) == (16 * 1024, 100)
    assert limits.HEAD_SECONDS == 10


def test_a_431_reaches_a_client_that_still_sends(worker: Served, wire: Wire) -> None:
    """A connection reset at once would take the answer with it. A smaller header is in test_framing.py."""
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        wire.send(worker.head(GOOD, X_Large="x" * 20_000_000))
    refused(wire, 431, "headers_too_large")


def test_a_header_that_never_ends_is_a_431_before_it_does(worker: Served, wire: Wire) -> None:
    wire.send(worker.head(GOOD)[:-2] + "X-Endless: ")
    for _ in range(8):
        wire.send("x" * 8192)
    refused(wire, 431, "headers_too_large")


@pytest.mark.parametrize("others", [98, 99])
@pytest.mark.parametrize(("method", "status"), [("GET", 200), ("DELETE", 405)], ids=["pipeline", "parser"])
def test_more_than_a_hundred_headers_are_a_431(
    worker: Served, wire: Wire, method: str, status: int, others: int
) -> None:
    """Host and key are two."""
    wire.send(worker.head(GOOD, method, **{f"X-{number}": "x" for number in range(others)}))
    if others == 98:
        assert wire.answer().status == status
    else:
        refused(wire, 431, "headers_too_large")


@pytest.mark.parametrize("size", [8 * 1024, 8 * 1024 + 1, 100_000])
def test_an_address_longer_than_eight_kibibytes_is_a_414(worker: Served, wire: Wire, size: int) -> None:
    wire.send(worker.head(GOOD.ljust(size, "&")))
    if size == 8 * 1024:
        assert wire.answer().status == 200
    else:
        refused(wire, 414, "uri_too_long")


@pytest.mark.parametrize("later", [False, True])
def test_an_unfinished_head_is_a_408(worker: Served, short_patience: None, wire: Wire, later: bool) -> None:
    if later:
        assert wire.send(worker.head(GOOD)).answer().status == 200
    wire.send("GET " if later else worker.head(GOOD)[:-2])
    refused(wire, 408, "request_timeout")


@pytest.mark.parametrize(
    ("coding", "sent", "dripped"),
    [("", -2, b"X-Drip: x\r\n"), ("", 0, b"\r\n"), ("", None, b"\r\n"), ("chunked", None, b"1\r\nx\r\n")],
    ids=["headers", "blank lines", "blank lines later", "a body"],
)
def test_what_drips_wins_no_time(
    worker: Served, short_patience: None, wire: Wire, coding: str, sent: int | None, dripped: bytes
) -> None:
    wire.send((worker.head(GOOD, Transfer_Encoding=coding) if coding else worker.head(GOOD))[:sent])
    if sent is None:
        wire.answer()
    assert drip(wire, dripped, SHORT / 6, 4) < 3 * SHORT


def test_an_idle_connection_stays_open_for_the_next_request(worker: Served, wire: Wire, short_patience: None) -> None:
    """The limit is on a request's head, not on the pause between two."""
    assert wire.send(worker.head(GOOD)).answer().status == 200
    assert wire.is_open(2 * SHORT)
    assert wire.send(worker.head(GOOD)).answer().status == 200


def test_connections_beyond_the_limit_get_a_503(settings: Settings) -> None:
    with served(msgspec.structs.replace(settings, connections=2)) as worker:
        with worker.wire() as first, worker.wire() as second:
            for wire in (first, second):
                assert wire.send(worker.head(GOOD)).answer().status == 200
            with worker.wire() as third:
                answer = refused(third.send(worker.head(GOOD)), 503, "unavailable")
                assert answer.header("retry-after") == "1"
            assert first.send(worker.head(GOOD)).answer().status == 200
        with worker.wire() as later:
            assert later.send(worker.head(GOOD)).answer().status == 200


def test_a_flood_of_connections_is_reset(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silent ones would hold an open file each until their time is over, and others need files too."""
    monkeypatch.setattr(limits, "MOST_OVER_LIMIT", 1)
    with served(msgspec.structs.replace(settings, connections=1)) as worker, worker.wire() as first:
        assert first.send(worker.head(GOOD)).answer().status == 200
        with worker.wire() as second:
            second.send("G")
            with pytest.raises(ConnectionResetError), worker.wire() as third:
                third.closes()
            refused(second.send(worker.head(GOOD)[1:]), 503, "unavailable")
        assert first.send(worker.head(GOOD)).answer().status == 200


def test_a_reader_that_takes_nothing_is_let_go(worker: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closing, "READ_SECONDS", SHORT)
    asked = worker.head(f"{FORECAST}?city_name=springfield&state_code=IL").encode()
    with socket.create_connection(("127.0.0.1", worker.port), timeout=1) as slow:
        with contextlib.suppress(TimeoutError, ConnectionError):
            for _ in range(10):
                slow.sendall(asked * 1000)
        assert worker.ask(GOOD).status == 200
        reset = select.poll()
        reset.register(slow, 0)  # errors and hang-ups are always told
        assert reset.poll(10_000)


@pytest.mark.parametrize(
    ("last", "half_closes"),
    [("", False), ("Connection: close\r\n", False), ("Transfer-Encoding: none\r\n", False), ("", True)],
    ids=["idle", "last", "bad", "half-closed"],
)
def test_a_reader_that_leaves_a_little_is_let_go_when_its_connection_is_closed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, last: str, half_closes: bool
) -> None:
    monkeypatch.setattr(closing, "READ_SECONDS", SHORT)
    with served(msgspec.structs.replace(settings, keep_alive=1)) as worker:
        head = worker.head(f"{FORECAST}?city_name=springfield&state_code=IL")
        with socket.create_connection(("127.0.0.1", worker.port), timeout=5) as slow:
            slow.sendall(head.encode() * 10_000 + (head[:-2] + last + "\r\n").encode())
            if half_closes:
                slow.shutdown(socket.SHUT_WR)
            assert worker.ask(GOOD).status == 200
            reset = select.poll()
            reset.register(slow, 0)
            assert reset.poll(8_000)
