"""A finished answer: status, headers, bytes. It is an ASGI application, so a handler returns it as it is."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

Header = tuple[bytes, bytes]
Send = Callable[[Any], Awaitable[None]]

# A member of the first ASGI message that servers ignore: tells the edge what to count.
OUTCOME = "forecast.outcome"
JSON: Header = (b"content-type", b"application/json")


class Reply(msgspec.Struct, frozen=True):
    """`outcome` is what it is counted as: the error's code, or how the answer came about."""

    status: int
    headers: tuple[Header, ...]
    body: bytes
    outcome: str

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:  # noqa: ARG002 - ASGI's signature
        headers = list(self.headers)
        if self.status != 304:
            headers.append((b"content-length", str(len(self.body)).encode()))
        await send({"type": "http.response.start", "status": self.status, "headers": headers, OUTCOME: self.outcome})
        await send({"type": "http.response.body", "body": self.body, "more_body": False})
