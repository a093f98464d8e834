"""A finished answer as ASGI messages."""

import pytest

from service.request.response import JSON, OUTCOME, Reply
from tests.support.asgi import exchange


@pytest.mark.parametrize(("status", "length"), [(200, [b"2"]), (404, [b"2"]), (304, [])])
async def test_the_length_is_always_told_except_of_what_has_no_body(status: int, length: list[bytes]) -> None:
    """And the outcome goes along for the edge to count."""
    start, body = await exchange(Reply(status, (JSON,), b"{}", "answered"))
    assert [value for name, value in start["headers"] if name == b"content-length"] == length
    assert (start["status"], start[OUTCOME], body) == (status, "answered", b"{}")


async def test_a_reply_can_be_sent_again() -> None:
    """What a server or the edge adds to one sending is not in the next."""
    reply = Reply(200, (JSON,), b"{}", "answered")
    (await exchange(reply))[0]["headers"].append((b"x-request-id", b"1"))
    assert (b"x-request-id", b"1") not in (await exchange(reply))[0]["headers"]
