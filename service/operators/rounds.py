"""Work that many callers ask for at once, done once for all of them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

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
