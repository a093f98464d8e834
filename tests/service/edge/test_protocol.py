"""What a connection may cost: sizes, times, malformed requests, each refused in the contract's form."""

from collections.abc import Iterator

import pytest

from service.edge import limits
from tests.support.served import FORECAST, Served
from tests.support.wire import Answer, Wire, drip

GOOD = f"{FORECAST}?zip_code=36436"
SHORT = 0.3


@pytest.fixture
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is 10 s; its effect is the same sooner."""
    monkeypatch.setattr(limits, "HEAD_SECONDS", SHORT)


@pytest.fixture
def wire(worker: Served) -> Iterator[Wire]:
    with worker.wire() as opened:
        yield opened


def refused(wire: Wire, status: int, code: str) -> Answer:
    """The next answer is this error, whole and in the contract's form, and the connection's last."""
    answer = wire.answer()
    body = answer.json()
    assert (answer.status, body["status"], body["code"]) == (status, status, code)
    assert list(body) == ["type", "title", "status", "detail", "code", "request_id"]
    assert body["request_id"] == answer.header("x-request-id")
    assert answer.header("content-type") == "application/json"
    assert answer.header("cache-control") == "no-store"
    assert answer.header("connection") == "close"
    assert answer.header("server") is None
    assert wire.closes()
    return answer


def test_the_limits_are_those_that_the_contract_documents() -> None:
    """8 KiB of address, 16 KiB and 100 of headers, 10 s."""
    assert limits.MOST_URL_BYTES == 8 * 1024
    assert (limits.MOST_HEADER_BYTES, limits.MOST_HEADERS) == (16 * 1024, 100)
    assert limits.HEAD_SECONDS == 10


# --- sizes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [20_000, 5_000_000], ids=["20 KB", "5 MB"])
def test_a_large_header_is_a_431_that_reaches_its_sender(worker: Served, wire: Wire, size: int) -> None:
    """Also while it still sends: a connection reset at once would take the answer with it."""
    wire.send(worker.head(GOOD, X_Large="x" * size))
    refused(wire, 431, "headers_too_large")


def test_a_header_that_never_ends_is_a_431_before_it_does(worker: Served, wire: Wire) -> None:
    """What cannot be complete any more within the limit is not waited for."""
    wire.send(worker.head(GOOD)[:-2] + "X-Endless: ")
    for _ in range(8):
        wire.send("x" * 8192)
    refused(wire, 431, "headers_too_large")


def test_many_headers_are_a_431(worker: Served, wire: Wire) -> None:
    """200 of them."""
    wire.send(worker.head(GOOD, **{f"X-{number}": "x" for number in range(200)}))
    refused(wire, 431, "headers_too_large")


def test_a_hundred_headers_are_answered(worker: Served, wire: Wire) -> None:
    """The limit itself is allowed: host, key and 98 others."""
    assert wire.send(worker.head(GOOD, **{f"X-{number}": "x" for number in range(98)})).answer().status == 200


@pytest.mark.parametrize("size", [8 * 1024 + 1, 100_000])
def test_a_long_address_is_a_414(worker: Served, wire: Wire, size: int) -> None:
    """Whether it arrives in one piece or not."""
    wire.send(worker.head(GOOD.ljust(size, "&")))
    refused(wire, 414, "uri_too_long")


def test_an_address_of_eight_kibibytes_is_answered(worker: Served, wire: Wire) -> None:
    """The limit itself is allowed."""
    assert wire.send(worker.head(GOOD.ljust(8 * 1024, "&"))).answer().status == 200


# --- malformed ---------------------------------------------------------------------------------------------------

MALFORMED = {
    "bare line feeds": "GET {good} HTTP/1.1\nHost: a\nx-api-key: {key}\n\n",
    "length and chunks": "GET {good} HTTP/1.1\r\n{head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
    "two lengths": "GET {good} HTTP/1.1\r\n{head}Content-Length: 0\r\nContent-Length: 1\r\n\r\n",
    "absolute form": "GET http://forecast.test{good} HTTP/1.1\r\n{head}\r\n",
    "CONNECT": "CONNECT forecast.test:443 HTTP/1.1\r\n{head}\r\n",
    "OPTIONS *": "OPTIONS * HTTP/1.1\r\n{head}\r\n",
    "HTTP/2 preface": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "unknown version": "GET {good} HTTP/1.7\r\n{head}\r\n",
    "folded header": "GET {good} HTTP/1.1\r\n{head}X-Folded: a\r\n b\r\n\r\n",
    "space before the colon": "GET {good} HTTP/1.1\r\nHost: a\r\nx-api-key : {key}\r\n\r\n",
    "zero byte": "GET {good} HTTP/1.1\r\n{head}X-Zero: \0\r\n\r\n",
    "TLS": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "byte that is not ASCII": "GET {good}&city_name=\xff HTTP/1.1\r\n{head}\r\n",
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_a_malformed_request_is_a_400_and_the_end(worker: Served, wire: Wire, kind: str) -> None:
    """Nothing that two parsers could read differently is answered."""
    head = f"Host: a\r\nx-api-key: {worker.key}\r\n"
    wire.send(MALFORMED[kind].format(good=GOOD, key=worker.key, head=head).encode("latin-1"))
    refused(wire, 400, "bad_request")


@pytest.mark.parametrize("hosts", ["", "Host: a\r\nHost: a\r\n", "Host: a\r\nHost: b\r\n"])
def test_a_request_needs_one_host(worker: Served, wire: Wire, hosts: str) -> None:
    """None and two are a 400 that says so."""
    answer = wire.send(f"GET {GOOD} HTTP/1.1\r\n{hosts}x-api-key: {worker.key}\r\n\r\n").answer()
    assert (answer.status, answer.json()["code"]) == (400, "bad_request")
    assert "Host" in answer.json()["detail"]


def test_refusals_by_the_parser_are_counted(worker: Served, wire: Wire) -> None:
    """They reach no router, so they have a counter of their own."""

    def counted() -> int:
        counters = worker.app.telemetry.snapshot().counters
        return sum(value for name, labels, value in counters if labels == ("bad_request",) and "rejected" in name)

    before = counted()
    wire.send("GET http://a/ HTTP/1.1\r\n\r\n")
    refused(wire, 400, "bad_request")
    assert counted() == before + 1


# --- unusual, and answered ---------------------------------------------------------------------------------------


def test_http_1_0_is_answered_and_closed(worker: Served, wire: Wire) -> None:
    """Without a Host, which it does not know."""
    answer = wire.send(f"GET {GOOD} HTTP/1.0\r\nx-api-key: {worker.key}\r\n\r\n").answer()
    assert (answer.status, answer.header("connection")) == (200, "close")
    assert wire.closes()


def test_expect_is_answered_at_once(worker: Served, wire: Wire) -> None:
    """Without "100 Continue", since no body is wanted."""
    assert wire.send(worker.head(GOOD, Expect="100-continue")).answer().status == 200


@pytest.mark.parametrize("protocol", ["h2c", "websocket", "TLS/1.0"])
def test_an_upgrade_is_answered_as_http_and_closed(worker: Served, wire: Wire, protocol: str) -> None:
    """What follows on the connection might not be HTTP."""
    answer = wire.send(worker.head(GOOD, Connection="Upgrade", Upgrade=protocol)).answer()
    assert (answer.status, answer.header("connection")) == (200, "close")
    assert wire.closes()


@pytest.mark.parametrize(
    ("headers", "body"),
    [({"Content-Length": "4"}, "body"), ({"Transfer-Encoding": "chunked"}, "4\r\nbody\r\n0\r\n\r\n")],
)
def test_a_body_is_refused_and_never_taken_for_a_request(
    worker: Served, wire: Wire, headers: dict[str, str], body: str
) -> None:
    """The next request on the connection is read from where the body ends."""
    wire.send(worker.head(GOOD, **headers) + body + worker.head(GOOD))
    first = wire.answer()
    assert (first.status, first.json()["code"]) == (400, "body_not_allowed")
    assert wire.answer().status == 200


def test_an_empty_body_is_none(worker: Served, wire: Wire) -> None:
    """Some clients send Content-Length: 0 with every GET."""
    assert wire.send(worker.head(GOOD, Content_Length="0")).answer().status == 200


# --- one after the other -----------------------------------------------------------------------------------------


def test_pipelined_requests_are_answered_in_order(worker: Served, wire: Wire) -> None:
    """Misses and hits, slow and fast, as they were asked."""
    asked = [f"r{number}" for number in range(12)]
    targets = (GOOD, f"{FORECAST}?city_name=Springfield&state_code=IL", f"{FORECAST}?zip_code=1", "/nowhere")
    wire.send("".join(worker.head(targets[number % 4], X_Request_Id=name) for number, name in enumerate(asked)))
    answers = [wire.answer() for _ in asked]
    assert [answer.header("x-request-id") for answer in answers] == asked
    assert [answer.status for answer in answers] == [200, 200, 400, 404] * 3


@pytest.mark.parametrize(
    ("last", "status", "code"),
    [
        ("GET http://a/ HTTP/1.1\r\n\r\n", 400, "bad_request"),
        ("nonsense\r\n\r\n", 400, "bad_request"),
        ("GET /" + "x" * 9000 + " HTTP/1.1\r\n\r\n", 414, "uri_too_long"),
        ("GET / HTTP/1.1\r\nX: " + "x" * 17_000 + "\r\n\r\n", 431, "headers_too_large"),
    ],
)
def test_a_refused_request_is_answered_after_those_before_it(
    worker: Served, wire: Wire, last: str, status: int, code: str
) -> None:
    """And nothing that comes after it is answered at all."""
    asked = ["a", "b", "c"]
    wire.send("".join(worker.head(GOOD, X_Request_Id=name) for name in asked) + last + worker.head(GOOD))
    answers = [wire.answer() for _ in asked]
    assert [(answer.status, answer.header("x-request-id")) for answer in answers] == [(200, name) for name in asked]
    refused(wire, status, code)


def test_a_request_may_arrive_in_pieces(worker: Served, wire: Wire) -> None:
    """However a network cuts it."""
    head = worker.head(GOOD)
    for start in range(0, len(head), 7):
        wire.send(head[start : start + 7])
    assert wire.answer().status == 200


def test_an_idle_connection_stays_open_for_the_next_request(worker: Served, wire: Wire, short_patience: None) -> None:
    """The limit is on a request's head, not on the pause between two."""
    assert wire.send(worker.head(GOOD)).answer().status == 200
    assert wire.is_open(2 * SHORT)
    assert wire.send(worker.head(GOOD)).answer().status == 200


# --- time --------------------------------------------------------------------------------------------------------


def test_a_silent_connection_is_closed(worker: Served, short_patience: None) -> None:
    """Without an answer, since nothing was asked."""
    with worker.wire() as wire:
        assert wire.closes()


def test_an_unfinished_head_is_a_408(worker: Served, short_patience: None) -> None:
    """With the first request of a connection."""
    with worker.wire() as wire:
        wire.send(worker.head(GOOD)[:-2])
        refused(wire, 408, "request_timeout")


def test_an_unfinished_head_is_a_408_also_later(worker: Served, short_patience: None) -> None:
    """With a later request of a connection."""
    with worker.wire() as wire:
        assert wire.send(worker.head(GOOD)).answer().status == 200
        wire.send("GET ")
        refused(wire, 408, "request_timeout")


def test_dripping_headers_win_no_time(worker: Served, short_patience: None) -> None:
    """The limit is on the whole head: a byte now and then does not renew it."""
    with worker.wire() as wire:
        wire.send(worker.head(GOOD)[:-2])
        assert drip(wire, b"X-Drip: x\r\n", SHORT / 6, 4) < 3 * SHORT


@pytest.mark.parametrize("served_before", [False, True])
def test_dripping_blank_lines_win_no_time(worker: Served, short_patience: None, served_before: bool) -> None:
    """They are allowed before a request, and are none."""
    with worker.wire() as wire:
        if served_before:
            wire.send(worker.head(GOOD)).answer()
        assert drip(wire, b"\r\n", SHORT / 6, 4) < 3 * SHORT


def test_a_dripping_body_wins_no_time(worker: Served, short_patience: None) -> None:
    """It was refused long before its end."""
    with worker.wire() as wire:
        wire.send(worker.head(GOOD, Transfer_Encoding="chunked")).answer()
        assert drip(wire, b"1\r\nx\r\n", SHORT / 6, 4) < 3 * SHORT
