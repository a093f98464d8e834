"""A finished answer as ASGI messages."""

from typing import Any

import pytest

from service.request.request import Request
from service.request.response import JSON, SCOPE_KEY, Response
from tests.support.asgi import exchange


@pytest.mark.parametrize(("status", "length"), [(200, [b"2"]), (404, [b"2"]), (304, [])])
async def test_the_length_is_always_sent_except_of_what_has_no_body(status: int, length: list[bytes]) -> None:
    request = Request(0.0, b"r1")
    response = Response.of(status, (JSON,), b"{}", "refused")
    scope: dict[str, Any] = {SCOPE_KEY: request}
    start, body = await exchange(response, **scope)
    assert [value for name, value in start["headers"] if name == b"content-length"] == length
    assert (start["status"], request.outcome, body) == (status, "refused", b"{}")


async def test_a_response_can_be_sent_again() -> None:
    response = Response.of(200, (JSON,), b"{}", "answered")
    scope: dict[str, Any] = {SCOPE_KEY: Request(0.0, b"r1")}
    (await exchange(response, **scope))[0]["headers"].append((b"x-request-id", b"1"))
    assert (b"x-request-id", b"1") not in (await exchange(response, **scope))[0]["headers"]
