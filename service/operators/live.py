"""The live overview, encoded once for all streams, and the share of requests that are logged."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Generic, TypeVar

import msgspec
from msgspec import Meta

from service.operators.overview import Overview


class Broadcast:
    """Sends the newest overview to all open streams. The instance's supervisor owns it, and publishes once a second.

    An overview is encoded once for all streams, and not at all while there are none.
    """

    def __init__(self, overview: Callable[[], Overview | None]) -> None:
        self._overview = overview
        self._next: asyncio.Future[bytes | None] | None = None  # what all streams wait for; None if none waits
        self._is_closed = False

    def publish(self) -> None:
        if self._next is not None:
            self._send(self._encoded())

    def close(self) -> None:
        """Ends every stream."""
        self._is_closed = True
        self._send(None)

    def newest(self) -> bytes | None:
        """Returns the current overview; None before the first, and after `close`."""
        return None if self._is_closed else self._encoded()

    def next(self) -> "asyncio.Future[bytes | None]":
        """Returns a future of the next overview, None after `close`. All callers share it: never cancel it."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
            if self._is_closed:
                self._next.set_result(None)
        return self._next

    def _encoded(self) -> bytes | None:
        found = self._overview()
        return msgspec.json.encode(found) if found is not None else None

    def _send(self, encoded: bytes | None) -> None:
        waiting, self._next = self._next, None
        if waiting is not None and not waiting.done():
            waiting.set_result(encoded)


class Sampling(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a request to change the access log's sampling, and of its answer."""

    rate: Annotated[float, Meta(ge=0, le=1)]  # share of the requests that are neither errors nor slow


T = TypeVar("T")


class Rounds(Generic[T]):
    """Runs `make` one call at a time. Each caller of `get` gets a result that was started after its call, never a stale
    one. The endpoint owns it.
    """

    def __init__(self, make: Callable[[], Awaitable[T]]) -> None:
        self._make = make
        self._under_way = asyncio.Lock()
        self._next: asyncio.Task[T] | None = None

    async def get(self) -> T:
        if self._next is None:
            self._next = asyncio.create_task(self._round())
        return await asyncio.shield(self._next)  # a caller that disconnects must not cancel it for the others

    async def _round(self) -> T:
        async with self._under_way:
            self._next = None
            return await self._make()
