"""Waiting for a state. How long it takes says nothing: the machine may be busy."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable

import httpx

# Seconds after which nobody believes any more that the state will come.
PATIENCE = 60.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.2


def until(holds: Callable[[], bool]) -> None:
    """Waits until `holds`; fails the test after `PATIENCE`.

    It may ask a service that is not there yet, or look into folders that are moved meanwhile. The pauses grow to a
    tenth of the time that was waited: whoever asks all the time takes the processor from whom they wait for.
    """
    begun = time.monotonic()
    end = begun + PATIENCE
    while True:
        with contextlib.suppress(httpx.TransportError, FileNotFoundError):
            if holds():
                return
        now = time.monotonic()
        assert now < end, f"not within {PATIENCE} s"
        time.sleep(min(_LONGEST_PAUSE, _FIRST_PAUSE + (now - begun) / 10))


async def eventually(holds: Callable[[], bool | Awaitable[bool]]) -> None:
    """The same in an event loop."""
    loop = asyncio.get_running_loop()
    end = loop.time() + PATIENCE
    while True:
        held = holds()
        if held if isinstance(held, bool) else await held:
            return
        assert loop.time() < end, f"not within {PATIENCE} s"
        await asyncio.sleep(0.002)


async def settled() -> None:
    """Lets everything in this event loop go on that can without the test. Costs nothing if nothing can."""
    ready: deque[object] = vars(asyncio.get_running_loop())["_ready"]
    while ready:  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0)
