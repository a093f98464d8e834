"""Malformed and unusual requests, and many on one connection: each refused or answered in the contract's form."""

import pytest

from tests.support.problems import refused
from tests.support.served import FORECAST, Served
from tests.support.wire import Wire

GOOD = f"{FORECAST}?zip_code=36436"


MALFORMED = {
    "bare line feeds": "GET {good} HTTP/1.1\nHost: a\nx-api-key: {key}\n\n",
    "no slash": "GET v1/ HTTP/1.1\r\n{head}\r\n",
    "an asterisk": "GET * HTTP/1.1\r\n{head}\r\n",
    "another scheme": "GET ftp://forecast.test/ HTTP/1.1\r\n{head}\r\n",
    "unknown version": "GET {good} HTTP/1.7\r\n{head}\r\n",
    "space before the colon": "GET {good} HTTP/1.1\r\nHost: a\r\nx-api-key : {key}\r\n\r\n",
    "byte that is not ASCII": "GET {good}&city_name=\xff HTTP/1.1\r\n{head}\r\n",
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_a_malformed_request_is_a_400_and_the_end(worker: Served, wire: Wire, kind: str) -> None:
    """Nothing that two parsers could read differently is answered."""
    head = f"Host: a\r\nx-api-key: {worker.key}\r\n"
    wire.send(MALFORMED[kind].format(good=GOOD, key=worker.key, head=head).encode("latin-1"))
    refused(wire, 400, "bad_request")


@pytest.mark.parametrize("scheme", ["http", "HTTPS"])
def test_the_absolute_form_is_answered_as_the_origin_form(worker: Served, wire: Wire, scheme: str) -> None:
    """RFC 9112 3.2.2 asks servers to accept it."""
    head = f"Host: a\r\nx-api-key: {worker.key}\r\n"
    answer = wire.send(f"GET {scheme}://forecast.test:80{GOOD} HTTP/1.1\r\n{head}\r\n".encode()).answer()
    assert answer.status == 200


@pytest.mark.parametrize("target", ["http://forecast.test", "http://forecast.test?zip_code=36436"])
def test_an_absolute_form_without_a_path_means_the_root(worker: Served, wire: Wire, target: str) -> None:
    wire.send(worker.head(target) + worker.head(GOOD))
    assert wire.answer().json()["code"] == worker.ask("/").json()["code"] == "not_found"
    assert wire.answer().status == 200


def test_a_path_that_begins_with_two_slashes_is_a_path(worker: Served, wire: Wire) -> None:
    assert wire.send(worker.head(f"//a{GOOD}")).answer().json()["code"] == "not_found"


@pytest.mark.parametrize("host", ["a b/c", "x/", "x?y", "x#y", "é", "http://x", "<script>", "x:y"])
def test_a_host_that_is_none_is_a_400(worker: Served, wire: Wire, host: str) -> None:
    head = f"GET {GOOD} HTTP/1.1\r\nHost: {host}\r\nx-api-key: {worker.key}\r\n\r\n"
    answer = wire.send(head.encode()).answer()
    assert (answer.status, answer.json()["code"]) == (400, "bad_request")
    assert "Host" in answer.json()["detail"]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8000", "[::1]:8000", "api.example.com", "a_b"])
def test_hosts_as_they_are_are_fine(worker: Served, wire: Wire, host: str) -> None:
    head = f"GET {GOOD} HTTP/1.1\r\nHost: {host}\r\nx-api-key: {worker.key}\r\n\r\n"
    assert wire.send(head.encode()).answer().status == 200


def test_refusals_by_the_parser_are_counted(worker: Served, wire: Wire) -> None:
    def counted() -> int:
        counters = worker.app.telemetry.snapshot().counters
        return sum(value for name, labels, value in counters if labels == ("bad_request",) and "rejected" in name)

    before = counted()
    wire.send("nonsense\r\n\r\n")
    refused(wire, 400, "bad_request")
    assert counted() == before + 1


@pytest.mark.parametrize("line", ["", "Connection: keep-alive\r\n"])
def test_http_1_0_is_answered_and_closed(worker: Served, wire: Wire, line: str) -> None:
    answer = wire.send(f"GET {GOOD} HTTP/1.0\r\nx-api-key: {worker.key}\r\n{line}\r\n").answer()
    assert (answer.status, answer.header("connection")) == (200, "close")
    assert wire.closes()


def test_expect_is_answered_at_once(worker: Served, wire: Wire) -> None:
    """Without "100 Continue", since no body is wanted."""
    assert wire.send(worker.head(GOOD, Expect="100-continue")).answer().status == 200


OFFERS = {
    "h2c": {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAMAAABkAAQBAAAAAAIAAAAA"},
    "websocket": {"Connection": "keep-alive, Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"},
    "several": {"connection": "upgrade", "upgrade": "h2c, TLS/1.0, IRC/6.9"},
}


@pytest.mark.parametrize("offer", OFFERS)
def test_an_offer_of_another_protocol_is_ignored(worker: Served, wire: Wire, offer: str) -> None:
    """RFC 9110 7.8. The connection goes on: some clients offer one with the first request of each."""
    for asked in (1, 1, 2):
        wire.send(worker.head(GOOD, **OFFERS[offer]) * asked)
        for answer in [wire.answer() for _ in range(asked)]:
            assert (answer.status, answer.header("connection"), answer.header("upgrade")) == (200, None, None)
    assert wire.send(worker.head(GOOD)).answer().status == 200


@pytest.mark.parametrize("size", [1, 7, 40])
@pytest.mark.parametrize("offer", OFFERS)
def test_the_body_behind_an_offer_is_not_the_next_request(worker: Served, wire: Wire, offer: str, size: int) -> None:
    hidden = worker.head(GOOD, X_Request_Id="hidden")
    sent = worker.head(GOOD, "POST", Content_Length=str(len(hidden)), **OFFERS[offer]) + hidden
    for start in range(0, len(sent), size):
        wire.send(sent[start : start + size])
    answer = wire.answer()
    assert (answer.status, answer.header("x-request-id") == "hidden") == (405, False)
    wire.send(worker.head(GOOD, Connection="close"))
    assert b"hidden" not in wire.rest()


def test_an_offer_on_the_last_request_of_a_connection_keeps_it_no_longer(worker: Served, wire: Wire) -> None:
    answer = wire.send(worker.head(GOOD, Connection="close, Upgrade", Upgrade="h2c")).answer()
    assert (answer.status, answer.header("connection")) == (200, "close")
    assert wire.closes()


@pytest.mark.parametrize(
    ("headers", "body"),
    [({"Content-Length": "4"}, "body"), ({"Transfer-Encoding": "chunked"}, "4\r\nbody\r\n0\r\n\r\n")],
)
def test_a_body_is_refused_and_is_no_request(worker: Served, wire: Wire, headers: dict[str, str], body: str) -> None:
    wire.send(worker.head(GOOD, **headers) + body + worker.head(GOOD))
    first = wire.answer()
    assert (first.status, first.json()["code"]) == (400, "body_not_allowed")
    assert wire.answer().status == 200


EMPTY = ["0\r\n\r\n", "000\r\n\r\n", "0;x=y\r\n\r\n", '0;x="a b"\r\n\r\n', "0\r\nX-Sum: 1\r\n\r\n"]


@pytest.mark.parametrize("coding", ["chunked", "Chunked", "gzip, chunked"])
@pytest.mark.parametrize("body", EMPTY)
def test_an_empty_body_in_chunks_is_none(worker: Served, wire: Wire, body: str, coding: str) -> None:
    plain = worker.ask(GOOD)
    sent = worker.head(GOOD, Transfer_Encoding=coding) + body
    answers = [wire.send(sent).answer()]
    for byte in sent:
        wire.send(byte)
    answers.append(wire.answer())
    wire.send(sent * 2)
    answers += [wire.answer(), wire.answer()]
    assert [(answer.status, answer.body, answer.header("connection")) for answer in answers] == [
        (200, plain.body, None)
    ] * 4


def test_trailers_without_end_behind_an_empty_body_are_a_431(worker: Served, wire: Wire) -> None:
    wire.send_until_closed(worker.head(GOOD, Transfer_Encoding="chunked") + "0\r\n" + "X-Trailer: x\r\n" * 10_000)
    refused(wire, 431, "headers_too_large")
