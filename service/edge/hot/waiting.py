"""A request that can be answered directly once somebody else has told something: the shared cache, or the rates."""

from collections.abc import Callable
from enum import Enum
from typing import Protocol

import msgspec

from service.edge.hot.heads import Asked
from service.edge.hot.remembered import Caller, Target
from service.http.reply import Header


class Unanswered(Enum):
    """What becomes of a request that is not answered there and then."""

    WAITING = "somebody else was asked, and the holder is told later"
    FOR_ROUTER = "the router path has to answer it"


WAITING, FOR_ROUTER = Unanswered.WAITING, Unanswered.FOR_ROUTER
# Bytes are the whole answer as it travels, counted. A class around them would cost 3 % of an answer.
Outcome = bytes | Unanswered


class Holder(Protocol):
    """Who waits for an answer, and asks nothing else meanwhile."""

    def told(self, make: Callable[[], Outcome]) -> None:
        """`make` makes the answer, there and then. Called in a later turn."""
        ...


class HeldRequest(msgspec.Struct, frozen=True):
    """A hot request while the shared cache or the rates are asked for its sake.

    `began` is in monotonic seconds; `dates` are the server's own headers.
    """

    target: Target
    caller: Caller
    asked: Asked
    dates: list[Header]
    began: float
    holder: Holder
