"""When an instance says for the first time that it serves."""

import asyncio
from collections.abc import Callable

# From the first worker that serves, for the others: one that cannot start must not keep the addresses back.
_PATIENCE_SECONDS = 5.0


class FirstWords:
    """Calls `say` once, when all `wanted` workers serve, or some of them and the others take long. `serving` tells how
    many do. The supervisor owns it.

    Who reads it may ask at once how the instance is, and is to hear of no worker that merely starts.
    """

    def __init__(self, wanted: int, serving: Callable[[], int], say: Callable[[], None]) -> None:
        self._wanted = wanted
        self._serving = serving
        self._say = say
        self._said = False
        self._waiting: asyncio.TimerHandle | None = None

    def reported(self) -> None:
        """A worker has reported."""
        if self._said:
            return
        if self._serving() >= self._wanted:
            self._tell()
        elif self._waiting is None and self._serving():
            self._waiting = asyncio.get_running_loop().call_later(_PATIENCE_SECONDS, self._tell_of_some)

    def _tell_of_some(self) -> None:
        self._waiting = None
        if self._serving():  # else it has died: the next one that serves begins anew
            self._tell()

    def _tell(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        self._said = True
        self._say()
