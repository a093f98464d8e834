"""Single flight: concurrent callers with the same key share one call."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import Generic, TypeVar

T = TypeVar("T")


class _Flight(Generic[T]):
    """A fill under way, and the number of waiting callers."""

    def __init__(self, fill: Callable[[], Awaitable[T]]) -> None:
        self.task = asyncio.create_task(_made(fill))  # the steps of the fill are its first caller's
        self.waiting = 0


class SingleFlight(Generic[T]):
    """Runs fills, one at a time per key. Its creator owns it.

    Fills run detached: a cancelled caller does not affect the others that wait for the same.
    """

    def __init__(self, linger: float = 0.0, *, most: int = 100_000, abandons: bool = False) -> None:
        """`linger`: seconds for which the result of a finished fill is reused; 0: only its waiting callers share it.

        `most`: how many results are reused; the oldest are dropped first. `abandons`: a fill is cancelled when its last
        caller is.
        """
        self._linger = linger
        self._most = most
        self._abandons = abandons
        self._flights: dict[Hashable, _Flight[T]] = {}
        self._abandoned: set[asyncio.Task[T]] = set()  # until they are cancelled
        # the results with their expiry, in the loop's seconds; the first one expires first
        self._landed: dict[Hashable, tuple[float, T]] = {}

    async def run(
        self, key: Hashable, fill: Callable[[], Awaitable[T]], observe: Callable[[str], None] = lambda _: None
    ) -> T:
        """Returns the result of `fill`, shared by all concurrent callers with this `key`.

        All of them get its error, too.

        `observe` is called at once with the caller's role: `led` began the fill, `joined` waits for it, `landed` reuses
        its result.
        """
        landed = self._landed.get(key)
        if landed is not None and asyncio.get_running_loop().time() < landed[0]:
            observe("landed")
            return landed[1]
        flight = self._flights.get(key)
        observe("joined" if flight is not None else "led")
        if flight is None:
            flight = self._flights[key] = _Flight(fill)
            flight.task.add_done_callback(partial(self._land, key))
        flight.waiting += 1
        try:
            await asyncio.wait([flight.task])
            return flight.task.result()
        finally:
            flight.waiting -= 1
            if self._abandons and not flight.waiting and not flight.task.done():
                self._abandon(key, flight)
            del flight  # an error refers to this frame: a cycle, which only the garbage collector would free

    def _abandon(self, key: Hashable, flight: _Flight[T]) -> None:
        """Lets the next caller start another fill."""
        del self._flights[key]
        self._abandoned.add(flight.task)
        flight.task.cancel()

    def _land(self, key: Hashable, task: asyncio.Task[T]) -> None:
        if task in self._abandoned:
            self._abandoned.remove(task)
        else:
            del self._flights[key]
        if task.cancelled() or task.exception() is not None or not self._linger:
            return
        now = asyncio.get_running_loop().time()
        while self._landed:
            oldest, (until, _) = next(iter(self._landed.items()))
            if until > now and len(self._landed) < self._most:
                break
            del self._landed[oldest]
        self._landed[key] = (now + self._linger, task.result())


async def _made(fill: Callable[[], Awaitable[T]]) -> T:
    return await fill()
