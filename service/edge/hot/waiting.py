"""A request that can be answered directly once somebody else has told something: the shared cache, or the rates."""

from collections.abc import Callable
from typing import Literal, Protocol

import msgspec

from service.edge.hot.heads import Asked
from service.edge.hot.remembered import Caller, Target
from service.http.reply import Header

# The whole answer as it travels; or the holder is told later; or None, if the request has to take the ordinary way.
Answer = bytes | Literal["later"] | None


class Holder(Protocol):
    """Who waits for an answer, and asks nothing else meanwhile."""

    def told(self, make: Callable[[], Answer]) -> None:
        """`make` makes the answer, there and then. Called in a later turn."""
        ...


class Waiting(msgspec.Struct, frozen=True):
    """`began` is in monotonic seconds; `dates` are the server's own headers."""

    target: Target
    caller: Caller
    asked: Asked
    dates: list[Header]
    began: float
    holder: Holder
