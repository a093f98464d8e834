"""The live overview, for every listener at once, and how large a share of requests is logged."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Generic, TypeVar

import msgspec
from msgspec import Meta

from service.operators.overview import Overview


class Broadcast:
    """The newest overview, for everybody who listens. The instance's supervisor owns it, and publishes once a second.

    It is encoded once for all, and not at all while nobody listens.
    """

    def __init__(self, overview: Callable[[], Overview | None]) -> None:
        self._overview = overview
        self._waiting: list[asyncio.Future[bytes | None]] = []
        self._is_closed = False

    def publish(self) -> None:
        if self._waiting:
            self._tell(self._encoded())

    def close(self) -> None:
        """Ends every stream."""
        self._is_closed = True
        self._tell(None)

    def newest(self) -> bytes | None:
        """The overview as it is; None before the first, and at the end."""
        return None if self._is_closed else self._encoded()

    def next(self) -> "asyncio.Future[bytes | None]":
        """The next overview; None at the end."""
        waiter: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        if self._is_closed:
            waiter.set_result(None)
        else:
            self._waiting.append(waiter)
        return waiter

    def _encoded(self) -> bytes | None:
        found = self._overview()
        return msgspec.json.encode(found) if found is not None else None

    def _tell(self, encoded: bytes | None) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(encoded)


class Sampling(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a request to change the request log's sample, and of its answer."""

    rate: Annotated[float, Meta(ge=0, le=1)]  # share of the requests that are neither errors nor slow


T = TypeVar("T")


class Rounds(Generic[T]):
    """Calls `make` one call at a time. Each caller gets the result of a call that began after it asked, never a stale
    one. It lives as long as the endpoint that owns it.
    """

    def __init__(self, make: Callable[[], Awaitable[T]]) -> None:
        self._make = make
        self._under_way = asyncio.Lock()
        self._next: asyncio.Task[T] | None = None

    async def get(self) -> T:
        if self._next is None:
            self._next = asyncio.create_task(self._round())
        return await asyncio.shield(self._next)  # a caller that goes away must not cancel it for the others

    async def _round(self) -> T:
        async with self._under_way:
            self._next = None
            return await self._make()
