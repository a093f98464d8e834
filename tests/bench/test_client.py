"""How the clients of the benchmarks tell answers apart."""

import pytest

from tests.bench.client import answer_length
from tests.bench.load import Endpoint, request_heads
from tests.bench.machine import interpreter

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"


def test_an_answer_is_as_long_as_its_head_and_body() -> None:
    assert answer_length(HEAD + b"hello") == len(HEAD) + 5
    assert answer_length(HEAD + b"helloHTTP/1.1 200") == len(HEAD) + 5


@pytest.mark.parametrize("cut", range(1, len(HEAD) + 5))
def test_an_answer_cut_anywhere_is_not_all_there(cut: int) -> None:
    assert answer_length((HEAD + b"hello")[:cut]) == 0


def test_a_length_in_a_body_is_not_taken_for_the_answers() -> None:
    assert answer_length(b"HTTP/1.1 304 Not Modified\r\n\r\ncontent-length: 9\r\n\r\n") == 29


def test_a_header_can_follow_a_request_head() -> None:
    (head,) = request_heads(Endpoint("http://127.0.0.1:1", "k"), ["36436"])

    assert head == (
        b"GET /v1/population-housing-forecast?zip_code=36436 HTTP/1.1\r\nhost: 127.0.0.1:1\r\nx-api-key: k\r\n"
    )


def test_requests_use_every_key_and_ask_for_everything() -> None:
    asked = Endpoint("http://h", "k", "/", "")
    heads = request_heads(asked, ["1", "2", "3"], ["a", "b"], ["accept-encoding: gzip"], "1.0")

    end = b"\r\naccept-encoding: gzip\r\n"
    assert heads == [
        b"GET /1 HTTP/1.0\r\nhost: h\r\nx-api-key: a" + end,
        b"GET /2 HTTP/1.0\r\nhost: h\r\nx-api-key: b" + end,
        b"GET /3 HTTP/1.0\r\nhost: h\r\nx-api-key: a" + end,
    ]


def test_of_the_interpreter_it_is_said_how_it_was_built() -> None:
    """By its configure, or by whose package it is."""
    assert interpreter("'--enable-optimizations' '--with-lto'", "").endswith(", profile-guided, optimised when linked")
    assert interpreter("'--enable-shared'", "").endswith(", built without profile-guided optimisation")
    assert interpreter("'--enable-shared'", "debian").endswith(", profile-guided, optimised when linked")
