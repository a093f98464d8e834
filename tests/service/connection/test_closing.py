"""The last answer of a connection arrives whole, whatever its client sends behind the request."""

import contextlib
import socket
import threading

import pytest

from tests.support.served import FORECAST, Served

CITY = f"{FORECAST}?city_name=springfield&state_code=IL"
DOCUMENT = "/v1/openapi.json"
SHORT = 0.3


def opened(worker: Served) -> socket.socket:
    """A client that takes little at a time, so that most of an answer has to wait for it."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    client.settimeout(60)
    client.connect(("127.0.0.1", worker.port))
    return client


def rest(client: socket.socket) -> bytes:
    """All that arrives. A connection that was reset has an error behind it instead of an end."""
    read = b""
    with contextlib.suppress(ConnectionResetError):
        while more := client.recv(1 << 16):
            read += more
    return read


@pytest.mark.parametrize("before", ["nothing", "one", "two at once"])
@pytest.mark.parametrize("target", [CITY, DOCUMENT])
def test_what_follows_the_last_request_cuts_no_answer(worker: Served, before: str, target: str) -> None:
    worker.ask(CITY)
    first, close = worker.head(CITY).encode(), worker.head(target, Connection="close").encode()
    expected = worker.ask(target).body
    with opened(worker) as client:
        many = {"nothing": 0, "one": 1, "two at once": 2}[before]
        if many:
            client.sendall(first * many)
        client.sendall(close)
        begun = client.recv(1)
        client.sendall(first * 50)
        assert (begun + rest(client)).endswith(expected)


def test_a_refusal_arrives_whole_behind_large_answers(worker: Served) -> None:
    worker.ask(CITY)
    with opened(worker) as client:
        client.sendall(worker.head(CITY).encode() * 20 + b"no request\r\n\r\n")
        begun = client.recv(1)
        client.sendall(b"something\r\n" * 1000)
        answers = begun + rest(client)
        assert answers.count(b"HTTP/1.1 200 ") == 20
        assert b'"code":"bad_request"' in answers.rpartition(b"HTTP/1.1 ")[2]


@pytest.mark.parametrize("at_once", [1, 2])
@pytest.mark.parametrize("target", [f"{FORECAST}?zip_code=90001", DOCUMENT])
def test_a_client_that_ends_its_side_gets_the_answers_it_waits_for(worker: Served, target: str, at_once: int) -> None:
    with worker.wire() as wire:
        wire.send(worker.head(target) * at_once).end_sending()
        assert wire.rest().count(b"HTTP/1.1 ") == at_once


def test_requests_that_arrive_before_the_connection_is_accepted_are_all_answered(worker: Served) -> None:
    """Also if the client has ended its side by then."""
    began, sent = threading.Event(), threading.Event()

    async def hold_up() -> None:
        began.set()
        sent.wait(60)

    holding = threading.Thread(target=worker.run, args=(hold_up,))
    holding.start()
    assert began.wait(60)
    with worker.wire() as wire:
        wire.send(worker.head(DOCUMENT) * 3).end_sending()
        sent.set()
        assert wire.rest().count(b"HTTP/1.1 ") == 3
    holding.join()


def test_a_large_answer_reaches_a_slow_client_that_has_ended_its_side(worker: Served) -> None:
    with opened(worker) as client:
        client.sendall(worker.head(DOCUMENT).encode())
        client.shutdown(socket.SHUT_WR)
        assert rest(client).endswith(worker.ask(DOCUMENT).body)


def test_a_client_that_ends_its_side_within_a_request_gets_no_answer(worker: Served) -> None:
    with worker.wire() as wire:
        assert wire.send(worker.head(DOCUMENT)[:-2]).end_sending().closes()
