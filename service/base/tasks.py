"""Background tasks: kept running despite errors, held until they are done, and ended."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

log = logging.getLogger("forecast.tasks")

AFTER_FAILURE_SECONDS = 1.0
# A failure that repeats is counted each time, but logged once in this time.
_SAY_AGAIN_SECONDS = 60.0
_CANCEL_AGAIN_SECONDS = 0.1

T = TypeVar("T")

# Unexpected failures in tasks of this process, by the task's name.
failures: Counter[str] = Counter()


def keep_running(
    name: str, act: Callable[[], Awaitable[float]], *, stopping: asyncio.Event | None = None
) -> "asyncio.Task[None]":
    """Starts a task that calls `act` repeatedly; each call returns the seconds until the next.

    Errors of `act` are logged and counted, and the task continues. It ends when it is cancelled, or between two calls
    when `stopping` is set.
    """
    return asyncio.create_task(_run(name, act, stopping or asyncio.Event()), name=name)


def hold_until_done(task: "asyncio.Task[T]", tasks: "set[asyncio.Task[T]]") -> "asyncio.Task[T]":
    """Keeps `task` in `tasks` until it ends, because the event loop alone does not keep it alive; returns it."""
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    return task


async def end_task(task: "asyncio.Task[Any] | None") -> None:
    """Cancels `task` until it has ended: a timeout of the Redis client swallows a cancellation that meets it."""
    while task is not None and not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=_CANCEL_AGAIN_SECONDS)


async def _run(name: str, act: Callable[[], Awaitable[float]], stopping: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    said, say_after = "", 0.0
    while not stopping.is_set():
        try:
            pause = await act()
        except Exception as error:
            failures[name] += 1
            pause, what = AFTER_FAILURE_SECONDS, repr(error)
            if what != said or loop.time() >= say_after:
                said, say_after = what, loop.time() + _SAY_AGAIN_SECONDS
                log.exception("%s failed; will retry", name)
        await wait_until_set(stopping, pause)


async def wait_until_set(event: asyncio.Event, seconds: float) -> bool:
    """Waits for `event`, at most `seconds`. Returns whether it is set."""
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), max(0.0, seconds))
    return event.is_set()
