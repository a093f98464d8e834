"""Runs work that many callers request in one turn of an event loop only once."""

import asyncio
from collections.abc import Callable


class OncePerTurn:
    """Calls `act` in the next turn of the event loop, once, however often `soon` is called in this one.

    Its owner gathers work, and uses it from one event loop.
    """

    __slots__ = ("_act", "_due")

    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act
        self._due = False

    def soon(self) -> bool:
        """Schedules the call; returns whether this was the first request in this turn."""
        if self._due:
            return False
        self._due = True
        asyncio.get_running_loop().call_soon(self._run)
        return True

    def _run(self) -> None:
        self._due = False
        self._act()
