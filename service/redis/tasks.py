"""Ending tasks that talk to Redis."""

import asyncio

_AGAIN_SECONDS = 0.1


async def end(task: "asyncio.Task[None] | None") -> None:
    """Cancels `task` until it has ended: a cancellation that meets one of the client's timeouts is swallowed by it."""
    while task is not None and not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=_AGAIN_SECONDS)
