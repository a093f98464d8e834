"""A hot request that waits for the shared cache, the warehouse, its quota or the rates, and what became of it."""

from collections.abc import Callable
from enum import Enum
from typing import Final, Protocol

import msgspec

from service.edge.hot.heads import HeaderValues
from service.edge.hot.remembered import Caller, Target
from service.http.reading import Reading
from service.http.reply import Header


class Unanswered(Enum):
    """What becomes of a request that was not answered at once."""

    WAITING = "a store was asked; the holder is told later"
    FOR_ROUTER = "the router path has to answer"


WAITING: Final = Unanswered.WAITING
FOR_ROUTER: Final = Unanswered.FOR_ROUTER
# Bytes are the whole answer, already counted. A class around them would cost 3 % of an answer.
HotOutcome = bytes | Unanswered


class Holder(Protocol):
    """The connection on which a request waits. It asks nothing else meanwhile."""

    @property
    def dates(self) -> list[Header]:
        """The server's own headers, now."""
        ...

    def told(self, make: Callable[[], HotOutcome]) -> bool:
        """`make` makes the outcome, at once. Called in a later turn of the loop. False: nobody is left to answer, and
        it was not called."""
        ...


class HeldRequest(msgspec.Struct):
    """A hot request that waits for the shared cache, the warehouse, its quota or the rates. It lives until its holder
    is told.

    It `began` when it arrived, and waits for these `since` then: it may have waited for its key before. `found`,
    `admitted`: when the shared cache, and then quota and rates had answered; 0 if they were not asked.
    """

    head: bytes  # as it arrived
    target: Target
    caller: Caller
    asked: HeaderValues
    dates: list[Header]  # the server's own headers
    began: float  # monotonic seconds
    holder: Holder | None  # None: it cannot wait, and is answered at once or not at all
    since: float  # monotonic seconds
    read: Reading | None = None  # what it means, if that was read
    found: float = 0.0
    admitted: float = 0.0
