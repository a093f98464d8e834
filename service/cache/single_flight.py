"""Single flight: one fill for all who ask at the same time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from service.base.tasks import hold_until_done
from service.base.tracing import STEP_OUTCOME, step

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Runs fills, one at a time per key. `ReadThrough` owns it.

    Fills run detached: a caller that goes away does no harm to the others that wait for the same.
    """

    def __init__(self, linger: float) -> None:
        """`linger`: for how many seconds a finished fill still answers. It is for callers whose cache look-up missed
        just before the fill was stored."""
        self._linger = linger
        self._waiting: dict[str, list[asyncio.Future[T]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        # until when (in the loop's seconds) a result answers, and the result; ordered by the former
        self._landed: dict[str, tuple[float, T]] = {}
        self._is_sweeping = False

    async def run(self, key: str, fill: Callable[[], Awaitable[T]]) -> T:
        """The result of `fill`, shared by all who ask for `key` meanwhile. An error reaches all who wait."""
        with step("single flight") as flight:
            landed = self._landed.get(key)
            if landed is not None:
                flight.set(STEP_OUTCOME, "landed")
                return landed[1]
            answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
            waiting = self._waiting.get(key)
            flight.set(STEP_OUTCOME, "led" if waiting is None else "joined")
            if waiting is None:
                self._waiting[key] = [answer]
                # the steps of the fill are its first caller's
                hold_until_done(asyncio.create_task(self._fly(key, fill)), self._tasks)
            else:
                waiting.append(answer)
            return await answer

    async def _fly(self, key: str, fill: Callable[[], Awaitable[T]]) -> None:
        try:
            result = await fill()
        except asyncio.CancelledError:
            for answer in self._waiting.pop(key):
                answer.cancel()
            raise
        except Exception as error:
            for answer in self._still_waiting(key):
                answer.set_exception(error)
            return
        for answer in self._still_waiting(key):
            answer.set_result(result)
        self._landed[key] = (asyncio.get_running_loop().time() + self._linger, result)
        if not self._is_sweeping:
            self._sweep()

    def _still_waiting(self, key: str) -> list[asyncio.Future[T]]:
        return [answer for answer in self._waiting.pop(key) if not answer.done()]

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
