"""Single flight: one fill, however many ask at once."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Fills run detached: a caller that goes away harms nobody who waits for the same."""

    def __init__(self, linger: float) -> None:
        """`linger`: seconds that a finished fill still answers, for callers whose cache look-up had missed just before
        the fill was stored."""
        self._linger = linger
        self._flights: dict[str, asyncio.Future[T]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, key: str, fill: Callable[[], Awaitable[T]], then: Callable[[T], Awaitable[object]]) -> T:
        """The result of `fill`, shared by all who ask for `key` meanwhile.

        `then` runs after it, with the result given out already. An error of `fill` reaches all who wait.
        """
        flight = self._flights.get(key)
        if flight is None:
            flight = asyncio.get_running_loop().create_future()
            self._flights[key] = flight
            task = asyncio.create_task(self._fly(key, flight, fill, then))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(flight)

    async def _fly(
        self,
        key: str,
        flight: "asyncio.Future[T]",
        fill: Callable[[], Awaitable[T]],
        then: Callable[[T], Awaitable[object]],
    ) -> None:
        linger = 0.0
        try:
            result = await fill()
            flight.set_result(result)
            linger = self._linger
            await then(result)
        except asyncio.CancelledError:
            flight.cancel()
            raise
        except Exception as error:
            if flight.done():
                raise
            flight.set_exception(error)
            flight.exception()  # read, so that an error nobody waits for any more is not reported as lost
        finally:
            asyncio.get_running_loop().call_later(linger, self._flights.pop, key, None)
