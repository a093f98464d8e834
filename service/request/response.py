"""A finished answer, and how it is sent."""

from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import Any

import msgspec

Header = tuple[bytes, bytes]
Send = Callable[[Any], Awaitable[None]]

# The member of the ASGI scope that holds the `Request`.
SCOPE_KEY = "forecast.request"
JSON: Header = (b"content-type", b"application/json")
NO_STORE: Header = (b"cache-control", b"no-store")  # for every error that a retry may avoid
STATUS_LINES = {one.value: b"HTTP/1.1 %d %b\r\n" % (one.value, one.phrase.encode()) for one in HTTPStatus}


class Response(msgspec.Struct, frozen=True, gc=False):
    """A finished answer. It may be sent to any number of requests.

    `lines` are its header lines as they are sent, each with its line end. `outcome` is what it counts as: the code of
    an error, or the source of the answer. The body of an error has the request's id between `body` and `rest`; its
    `lines` have no length, because ids differ in theirs.
    """

    status: int
    lines: bytes
    body: bytes
    outcome: str
    rest: bytes = b""

    @classmethod
    def of(cls, status: int, headers: Sequence[Header], body: bytes, outcome: str) -> "Response":
        """Returns the answer with these headers and the length of its body. A 304 has no length."""
        length = b"" if status == 304 else b"content-length: %d\r\n" % len(body)
        return cls(status, lines_of(tuple(headers)) + length, body, outcome)

    @property
    def headers(self) -> list[Header]:
        """The header fields; those of an error lack the length."""
        return fields_in(self.lines)

    def whole(self, request_id: bytes) -> tuple[bytes, bytes]:
        """Returns header lines and body of the answer to the request with this id."""
        if not self.rest:
            return self.lines, self.body
        size = len(self.body) + len(request_id) + len(self.rest)
        return b"%bcontent-length: %d\r\n" % (self.lines, size), b"%b%b%b" % (self.body, request_id, self.rest)

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:  # noqa: ARG002 - ASGI's names
        """Sends the answer: a handler returns it as an ASGI application."""
        request = scope[SCOPE_KEY]
        request.outcome = self.outcome
        lines, body = self.whole(request.request_id)
        await send({"type": "http.response.start", "status": self.status, "headers": fields_in(lines)})
        await send({"type": "http.response.body", "body": body, "more_body": False})


@lru_cache(maxsize=256)
def lines_of(fields: tuple[Header, ...]) -> bytes:
    """Returns header fields as they are sent."""
    return b"".join([b"%b: %b\r\n" % field for field in fields])


def fields_in(lines: bytes) -> list[Header]:
    """Returns the header fields of lines as they are sent."""
    parts = (line.partition(b": ") for line in lines.split(b"\r\n")[:-1])
    return [(name, value) for name, _, value in parts]
