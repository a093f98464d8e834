"""What the edge reads from a request's headers."""

import re

import pytest

from service.request.request import new_request_id, read_head


def test_repeated_headers_are_kept_apart_or_joined() -> None:
    """Keys and hosts are counted; lists are joined."""
    head = read_head(
        [(b"host", b"a"), (b"host", b"b"), (b"x-api-key", b"1"), (b"x-api-key", b"2"),
         (b"accept-encoding", b"br"), (b"accept-encoding", b"gzip"), (b"if-none-match", b'"a"'),
         (b"if-none-match", b"*")],
        0.0,
    )  # fmt: skip
    assert (head.hosts, head.api_keys) == (2, (b"1", b"2"))
    assert (head.accept_encoding, head.if_none_match) == (b"br,gzip", b'"a",*')


@pytest.mark.parametrize(
    ("header", "has_body"),
    [((b"content-length", b"0"), False), ((b"content-length", b" 00 "), False), ((b"content-length", b"1"), True),
     ((b"transfer-encoding", b"chunked"), True), ((b"content-type", b"text/plain"), False)],
)  # fmt: skip
def test_a_body_is_announced_by_its_length_or_its_coding(header: tuple[bytes, bytes], has_body: bool) -> None:
    """A length of zero announces none."""
    assert read_head([header], 0.0).has_body is has_body


def test_a_new_request_id_is_usable_and_unique() -> None:
    """It would be accepted if it were sent back."""
    made = {new_request_id() for _ in range(10_000)}
    assert len(made) == 10_000
    assert all(re.fullmatch(rb"[A-Za-z0-9._-]{1,64}", one) for one in made)
    one = made.pop()
    assert read_head([(b"x-request-id", one)], 0.0).request_id == one.decode()
