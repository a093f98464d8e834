"""The body of an operator's request: small, and declared as JSON, which a form on another site cannot send."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec

from service.http.errors import ApiError
from service.http.reply import Header

MOST_BYTES = 4096  # of a body

T = TypeVar("T", bound=msgspec.Struct)


async def read_body(headers: list[Header], receive: Callable[[], Awaitable[Any]]) -> bytes:
    """The whole body; empty if there is none.

    Raises:
        ApiError: if it is too large, is not declared as JSON, or ends early.
    """
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise ApiError("invalid_body", "The connection ended before the body did.")
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > MOST_BYTES:
            raise ApiError("body_too_large")
    if body and not _declares_json(headers):
        raise ApiError("not_json")
    return body


def decoded(body: bytes, kind: type[T]) -> T:
    """`body` as a `kind`; the defaults of `kind` if it is empty. Raises ApiError if it does not fit."""
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ApiError("invalid_body", f"The body is not what this endpoint takes: {error}.") from None


def _declares_json(headers: list[Header]) -> bool:
    given = [value.partition(b";")[0].strip().lower() for name, value in headers if name == b"content-type"]
    return given == [b"application/json"]
