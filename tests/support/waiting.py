"""Waiting for what will happen, and for no longer than it should take."""

import asyncio
from collections.abc import Awaitable, Callable


async def eventually(holds: Callable[[], bool | Awaitable[bool]], seconds: float = 5.0) -> float:
    """Waits until `holds`; returns the seconds that it took, or fails the test after `seconds`."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    while True:
        held = holds()
        if held if isinstance(held, bool) else await held:
            return loop.time() - began
        assert loop.time() - began < seconds, f"not within {seconds} s"
        await asyncio.sleep(0.002)
