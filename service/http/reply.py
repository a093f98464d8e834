"""A finished answer: status, headers, bytes. It is an ASGI application, so a handler returns it as it is."""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec

from service.cache.key import CacheKey

Header = tuple[bytes, bytes]
Send = Callable[[Any], Awaitable[None]]

# Members of the first ASGI message that servers ignore: tell the edge what to count, and what it may answer itself.
OUTCOME = "forecast.outcome"
KEPT = "forecast.kept"
SOURCE = "forecast.source"
COUNTED = "forecast.counted"
JSON: Header = (b"content-type", b"application/json")


class Kept(msgspec.Struct, frozen=True):
    """Where an answer is kept that the same request may be given again, and what it counts as."""

    key: CacheKey
    outcome: str


class KeptError(msgspec.Struct, frozen=True):
    """An error that the same request has again as long as `release` is served. In its body, the id of the request goes
    between `before` and `behind`."""

    release: str
    status: int
    code: str
    headers: tuple[Header, ...]
    before: bytes
    behind: bytes


class Counted(msgspec.Struct, frozen=True):
    """So many of the requests that a batch counts as ended like this."""

    number: int
    status: int
    outcome: str
    tier: Literal["near", "shared", "warehouse", "previous"] | None  # None: nothing was found


class Source(msgspec.Struct, frozen=True):
    """Where the answer of a data area came from."""

    tier: Literal["near", "shared", "warehouse", "previous"]  # previous: a release that stands in for the current one
    release: str  # id
    query: str  # canonical


class Reply(msgspec.Struct, frozen=True):
    """`outcome` is what it is counted as: the error's code, or how the answer came about."""

    status: int
    headers: tuple[Header, ...]
    body: bytes
    outcome: str
    kept: Kept | KeptError | None = None
    source: Source | None = None
    counted: tuple[Counted, ...] = ()  # if it counts as more than one request

    def fields(self) -> list[Header]:
        """The headers, with the body's length."""
        if self.status == 304:
            return list(self.headers)
        return [*self.headers, (b"content-length", str(len(self.body)).encode())]

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:  # noqa: ARG002 - ASGI's signature
        start = {"type": "http.response.start", "status": self.status, "headers": self.fields()}
        await send({**start, OUTCOME: self.outcome, KEPT: self.kept, SOURCE: self.source, COUNTED: self.counted})
        await send({"type": "http.response.body", "body": self.body, "more_body": False})


# Makes an answer that has to be waited for. Raises ApiError.
Later = Callable[[], Awaitable[Reply]]
