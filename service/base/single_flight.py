"""Single flight: one call for all who ask for the same at the same time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import Generic, TypeVar

from service.base.tasks import hold_until_done

log = logging.getLogger("forecast.tasks")

T = TypeVar("T")
# Called with the result, or with the error that the fill ended with.
Tell = Callable[[T | BaseException], None]


class _Flight(Generic[T]):
    """A fill under way, and those who wait for it."""

    def __init__(self) -> None:
        self.waiters: list[Tell[T]] = []
        self.waiting = 0
        self.task: asyncio.Task[T] | None = None


class SingleFlight(Generic[T]):
    """Runs fills, one at a time per key. Whoever makes it owns it.

    Fills run detached: a caller that goes away does no harm to the others that wait for the same.
    """

    def __init__(self, linger: float = 0.0, *, abandons: bool = False) -> None:
        """`linger`: for how many seconds a finished fill still answers; 0: only those who wait. It is for callers whose
        cache look-up missed just before the fill was stored. `abandons`: a fill that nobody waits for any more is
        cancelled."""
        self._linger = linger
        self._abandons = abandons
        self._flights: dict[Hashable, _Flight[T]] = {}
        self._tasks: set[asyncio.Task[T]] = set()
        # until when (in the loop's seconds) a result answers, and the result; ordered by the former
        self._landed: dict[Hashable, tuple[float, T]] = {}
        self._is_sweeping = False

    async def run(
        self, key: Hashable, fill: Callable[[], Awaitable[T]], told: Callable[[str], None] = lambda _: None
    ) -> T:
        """The result of `fill`, shared by all who ask for `key` meanwhile. An error reaches all who wait.

        `told` is called at once with what this caller is: `led` began the fill, `joined` waits for it, `landed` comes
        when it is just over.
        """
        landed = self._landed.get(key)
        if landed is not None:
            told("landed")
            return landed[1]
        told("joined" if key in self._flights else "led")
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        flight = self._join(key, fill, partial(_settle, answer))
        try:
            return await answer
        except asyncio.CancelledError:
            self._leave(key, flight)
            raise
        finally:
            del answer, flight  # an error refers to this frame: a cycle, which only the garbage collector would free

    def ask(self, key: Hashable, fill: Callable[[], Awaitable[T]], tell: Tell[T]) -> None:
        """`run` without a task to wait in: `tell` is called once, in a later turn of the loop."""
        landed = self._landed.get(key)
        if landed is not None:
            asyncio.get_running_loop().call_soon(tell, landed[1])
        else:
            self._join(key, fill, tell)

    def _join(self, key: Hashable, fill: Callable[[], Awaitable[T]], tell: Tell[T]) -> _Flight[T]:
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight()
            # the steps of the fill are its first caller's
            flight.task = hold_until_done(asyncio.create_task(_made(fill)), self._tasks)
            flight.task.add_done_callback(partial(self._land, key, flight))
        flight.waiters.append(tell)
        flight.waiting += 1
        return flight

    def _leave(self, key: Hashable, flight: _Flight[T]) -> None:
        flight.waiting -= 1
        if self._abandons and not flight.waiting and flight.task is not None:
            self._forget(key, flight)
            flight.task.cancel()

    def _forget(self, key: Hashable, flight: _Flight[T]) -> None:
        """Whoever asks from now on begins another one."""
        if self._flights.get(key) is flight:
            del self._flights[key]

    def _land(self, key: Hashable, flight: _Flight[T], task: asyncio.Task[T]) -> None:
        self._forget(key, flight)
        waiters, flight.waiters, flight.task = flight.waiters, [], None
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is None and self._linger:
            self._landed[key] = (asyncio.get_running_loop().time() + self._linger, task.result())
            if not self._is_sweeping:
                self._sweep()
        for tell in waiters:
            try:
                tell(task.result() if error is None else error)
            except Exception:  # it must not take the result from the others
                log.exception("who waited for %s could not be told", key)

    def _sweep(self) -> None:
        """Forgets results in time. One alarm serves all: one for each would cost more than keeping the result."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        while self._landed:
            key, (until, _) = next(iter(self._landed.items()))
            if until > now:
                break
            del self._landed[key]
        self._is_sweeping = bool(self._landed)
        if self._is_sweeping:
            loop.call_later(until - now, self._sweep)


def _settle(answer: asyncio.Future[T], result: T | BaseException) -> None:
    if answer.done():
        return
    if isinstance(result, asyncio.CancelledError):
        answer.cancel()
    elif isinstance(result, BaseException):
        answer.set_exception(result)
    else:
        answer.set_result(result)


async def _made(fill: Callable[[], Awaitable[T]]) -> T:
    return await fill()
