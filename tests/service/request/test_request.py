"""What is read from a request's headers."""

import re

import pytest

from service.request.request import Request, new_request_id, read_headers
from service.request.response import Header


def read(*headers: Header, method: str = "GET", version: str = "1.1") -> Request:
    return read_headers(headers, began=0.0, method=method, version=version, sent_path="/", query=b"")


def test_repeated_headers_are_refused_or_joined() -> None:
    host, key = (b"host", b"a"), (b"x-api-key", b"1")
    request = read(
        *(host, key, (b"accept-encoding", b"br"), (b"accept-encoding", b"gzip")),
        *((b"if-none-match", b'"a"'), (b"if-none-match", b"*")),
    )
    assert request.fault is None
    assert (request.accept_encoding, request.if_none_match) == (b"br,gzip", b'"a",*')
    for twice in (host, key):
        fault = read(host, key, twice).fault
        assert fault is not None
        assert fault[0] == "bad_request"
    assert read(host, (b"x-request-id", b"r1"), (b"x-request-id", b"r2")).request_id not in (b"r1", b"r2", b"r1,r2")


@pytest.mark.parametrize(
    ("header", "has_body"),
    [((b"content-length", b"0"), False), ((b"content-length", b" 00 "), False), ((b"content-length", b"1"), True),
     ((b"transfer-encoding", b"chunked"), True), ((b"content-type", b"text/plain"), False)],
)  # fmt: skip
def test_a_body_is_announced_by_its_length_or_its_coding(header: Header, has_body: bool) -> None:
    fault = read((b"host", b"a"), header).fault
    assert (fault == ("body_not_allowed", None)) is has_body
    assert read((b"host", b"a"), header, method="POST").fault is None


def test_only_http_1_0_may_leave_the_host_out() -> None:
    assert read().fault is not None
    assert read(version="1.0").fault is None
    assert read(version="2.0").fault is not None


def test_a_new_request_id_is_usable_and_unique() -> None:
    made = {new_request_id() for _ in range(10_000)}
    assert len(made) == 10_000
    assert all(re.fullmatch(rb"[A-Za-z0-9._-]{1,64}", one) for one in made)
    one = made.pop()
    assert read((b"x-request-id", one)).request_id == one


@pytest.mark.parametrize(("sent", "path"), [("/", "/"), ("/v1", "/v1"), ("/v1/", "/v1"), ("/v1//", "/v1/")])
def test_one_slash_at_the_end_of_a_path_does_not_count(sent: str, path: str) -> None:
    assert Request(0.0, b"", sent_path=sent).path == path


def test_the_query_is_that_of_the_request_line() -> None:
    assert Request(0.0, b"", line=b"GET /a?b=c%20d HTTP/1.1").query == b"b=c%20d"
    assert Request(0.0, b"", line=b"GET /a HTTP/1.1").query == b""
    assert Request(0.0, b"", sent_query=b"x").query == b"x"
